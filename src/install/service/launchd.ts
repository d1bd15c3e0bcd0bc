import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ensureHome } from '../../runtime/store/home.ts';
import { call, removeFiles, retry, writeFiles } from './files.ts';
import {
  type ServiceManager,
  type ServiceReport,
  type ServiceSpec,
  type ServiceSystem,
  UnfitPath,
} from './types.ts';

/** The label of the agent. */
export const LABEL = 'com.shadowob.connector.daemon';

/** A text inside a property list (S-338). What is not UTF-8 has become replacement characters, and is refused. */
export function xmlText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 can't hold these, escaped or not.
  if (text.includes('\ufffd') || /[\u0000-\u0008\u000b\u000c\u000e-\u001f]/.test(text)) {
    throw new UnfitPath('a path that is not UTF-8 fits into no property list');
  }
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** The LaunchAgent: launchd makes the socket and starts the daemon for the first client (S-338). */
export function agentPlist(spec: ServiceSpec): string {
  const words = [
    ...spec.program,
    'daemon',
    'run',
    '--started-by',
    'launchd',
    '--log-file',
    spec.logPath,
    '--socket',
    spec.socketPath,
  ];
  const text = (value: string) => `<string>${xmlText(value)}</string>`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    '<plist version="1.0">',
    '<dict>',
    '  <key>Label</key>',
    `  ${text(LABEL)}`,
    '  <key>ProgramArguments</key>',
    '  <array>',
    ...words.map((word) => `    ${text(word)}`),
    '  </array>',
    '  <key>Sockets</key>',
    '  <dict>',
    '    <key>Listener</key>',
    '    <dict>',
    '      <key>SockPathName</key>',
    `      ${text(spec.socketPath)}`,
    '      <key>SockPathMode</key>',
    '      <integer>384</integer>',
    '    </dict>',
    '  </dict>',
    // What the daemon has started for its user outlives a stop and an upgrade (D11).
    '  <key>AbandonProcessGroup</key>',
    '  <true/>',
    ...(spec.always
      ? [
          '  <key>RunAtLoad</key>',
          '  <true/>',
          '  <key>KeepAlive</key>',
          '  <dict>',
          '    <key>SuccessfulExit</key>',
          '    <false/>',
          '  </dict>',
        ]
      : []),
    '  <key>StandardOutPath</key>',
    `  ${text(spec.logPath)}`,
    '  <key>StandardErrorPath</key>',
    `  ${text(spec.logPath)}`,
    '</dict>',
    '</plist>',
    '',
  ].join('\n');
}

/** How often and how long apart it is looked whether an old job is gone: 5 s in all (S-338). */
const GONE_TRIES = 50;
const GONE_PAUSE_MS = 100;

/** launchd's agents of this user (S-338, S-339). */
export function launchdManager(system: ServiceSystem): ServiceManager {
  const path = join(system.userHome, 'Library', 'LaunchAgents', `${LABEL}.plist`);
  const domain = `gui/${system.uid ?? 0}`;
  const target = `${domain}/${LABEL}`;

  const bootOut = async (): Promise<boolean> => {
    await call(system, ['launchctl', 'bootout', target]);
    for (let tries = 0; tries < GONE_TRIES; tries += 1) {
      if (!(await call(system, ['launchctl', 'print', target])).ok) return true;
      await system.pause(GONE_PAUSE_MS);
    }
    return false;
  };

  return {
    kind: 'launchd',
    words: 'launchd (started by the first client)',
    files: (spec) => [{ path, text: agentPlist(spec) }],
    installed: () => existsSync(path),
    async install(spec): Promise<ServiceReport> {
      ensureHome(spec.home, system.platform);
      const written = writeFiles([{ path, text: agentPlist(spec) }]);
      if (!written.ok) return { ok: false, done: written.done, notes: [] };
      const loaded = (await call(system, ['launchctl', 'print', target])).ok;
      if (loaded && !written.changed) return { ok: true, done: [], notes: [] };
      if (loaded && !(await bootOut())) {
        return { ok: false, done: written.done, notes: ['launchd still has the old job; try again'] };
      }
      const boot = await retry(system, ['launchctl', 'bootstrap', domain, path], 5, 200);
      return {
        ok: boot.ok,
        done: [...written.done, ...(boot.ok ? [`loaded ${LABEL}`] : [])],
        notes: boot.ok ? [] : [`launchctl: ${boot.said}`],
      };
    },
    async uninstall(): Promise<ServiceReport> {
      // The file may have been removed by hand: the job stays loaded until the log-out.
      const loaded = (await call(system, ['launchctl', 'print', target])).ok;
      if (!loaded && !existsSync(path)) return { ok: true, done: [], notes: [] };
      const gone = await bootOut();
      const done = [...(loaded && gone ? [`unloaded ${LABEL}`] : []), ...removeFiles([path])];
      return { ok: gone, done, notes: gone ? [] : ['launchd still has the job'] };
    },
    async disarm(): Promise<ServiceReport> {
      const gone = await bootOut();
      return {
        ok: gone,
        done: gone ? ['disarmed the socket'] : [],
        notes: gone ? [] : ['launchd still has the job'],
      };
    },
  };
}
