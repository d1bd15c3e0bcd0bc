import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { ensureHome } from '../../runtime/store/home.ts';
import { call, isThere, removeFiles, retry, writeFiles } from './files.ts';
import { linger, unlinger } from './linger.ts';
import {
  type ServiceFile,
  type ServiceManager,
  type ServiceReport,
  type ServiceSpec,
  type ServiceSystem,
  UnfitPath,
} from './types.ts';

const NAME = 'shadowob-connector-daemon';

/** Where user units lie. */
export function unitFolder(system: Pick<ServiceSystem, 'env' | 'userHome'>): string {
  const config = system.env['XDG_CONFIG_HOME'];
  const base = config && isAbsolute(config) ? config : join(system.userHome, '.config');
  return join(base, 'systemd', 'user');
}

function line(text: string): string {
  if (/[\r\n]/.test(text)) throw new UnfitPath('a path with a line break fits into no unit');
  return text;
}

/** One word of `ExecStart`, quoted; `%` and `$` are doubled (S-338). */
export function execWord(word: string): string {
  const escaped = line(word)
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('%', '%%')
    .replaceAll('$', '$$$$');
  return `"${escaped}"`;
}

/** A path of `ListenStream` and the like: only `%` means something there (S-338). */
export function unitPath(path: string): string {
  return line(path).replaceAll('%', '%%');
}

/** The socket unit: any client starts the service (S-340). */
export function socketUnit(spec: ServiceSpec): string {
  return [
    '[Unit]',
    'Description=shadowob-connector: socket of the daemon',
    '',
    '[Socket]',
    `ListenStream=${unitPath(spec.socketPath)}`,
    'SocketMode=0600',
    'DirectoryMode=0700',
    '',
    '[Install]',
    'WantedBy=sockets.target',
    '',
  ].join('\n');
}

/**
 * The service unit. `KillMode=process`: what the daemon has started for its user outlives a stop and an upgrade (D11).
 * `always` adds the start at login and the restart after a failure.
 */
export function serviceUnit(spec: ServiceSpec): string {
  const words = [
    ...spec.program,
    'daemon',
    'run',
    '--started-by',
    'systemd',
    '--log-file',
    spec.logPath,
    '--socket',
    spec.socketPath,
  ];
  return [
    '[Unit]',
    'Description=shadowob-connector: knows what every coding agent here is doing',
    `Requires=${NAME}.socket`,
    `After=${NAME}.socket`,
    '',
    '[Service]',
    `ExecStart=${words.map(execWord).join(' ')}`,
    'KillMode=process',
    ...(spec.always ? ['Restart=on-failure', 'RestartSec=5'] : []),
    ...(spec.always ? ['', '[Install]', 'WantedBy=default.target'] : []),
    '',
  ].join('\n');
}

/** Whether this user has a manager that can be asked; a machine without one (a container) has no such folder. */
export function hasUserManager(system: Pick<ServiceSystem, 'env' | 'platform'>): boolean {
  if (system.platform !== 'linux') return false;
  if (system.env['SHADOWOB_CONNECTOR_DAEMON_DISABLE_SYSTEMD'] === '1') return false;
  const runtime = system.env['XDG_RUNTIME_DIR'];
  return runtime !== undefined && runtime !== '' && existsSync(join(runtime, 'systemd'));
}

/** systemd's user manager (S-338, S-339). */
export function systemdManager(system: ServiceSystem): ServiceManager {
  const folder = unitFolder(system);
  const socket = join(folder, `${NAME}.socket`);
  const service = join(folder, `${NAME}.service`);
  const startAtLogin = join(folder, 'default.target.wants', `${NAME}.service`);
  const links = [join(folder, 'sockets.target.wants', `${NAME}.socket`), startAtLogin];
  const files = (spec: ServiceSpec): readonly ServiceFile[] => [
    { path: socket, text: socketUnit(spec) },
    { path: service, text: serviceUnit(spec) },
  ];
  const systemctl = (...words: readonly string[]) => ['systemctl', '--user', ...words];

  return {
    kind: 'systemd',
    words: 'systemd --user (started by the first client)',
    files,
    installed: () => existsSync(socket),
    async install(spec): Promise<ServiceReport> {
      ensureHome(spec.home, system.platform);
      const written = writeFiles(files(spec));
      if (!written.ok) return { ok: false, done: written.done, notes: [] };
      const reload = written.changed
        ? await call(system, systemctl('daemon-reload'))
        : { ok: true, said: '' };
      // A start at login that is no longer wanted: its link outlives the unit's own word of it.
      if (!spec.always && existsSync(startAtLogin))
        await call(system, systemctl('disable', `${NAME}.service`));
      const units = spec.always ? [`${NAME}.socket`, `${NAME}.service`] : [`${NAME}.socket`];
      const enabled = await retry(system, systemctl('enable', '--now', ...units), 5, 200);
      const kept = await linger(system, spec);
      // Without lingering it works until the log-out: that is said, and is no failure of the service.
      const ok = reload.ok && enabled.ok;
      const done = [...written.done, ...(enabled.ok ? [`enabled ${units.join(' and ')}`] : []), ...kept.done];
      const failed = [reload, enabled].filter((one) => !one.ok).map((one) => `systemctl: ${one.said}`);
      return { ok, done, notes: [...failed, ...kept.notes] };
    },
    async uninstall(spec): Promise<ServiceReport> {
      const kept = await unlinger(system, spec);
      const units = [`${NAME}.socket`, `${NAME}.service`];
      const whole = existsSync(socket) && existsSync(service);
      // Units removed by hand leave their links, and a socket that systemd still holds.
      const rest = [socket, service, ...links].some(isThere);
      if (!rest && !(await call(system, systemctl('is-active', '--quiet', `${NAME}.socket`))).ok) return kept;
      await call(system, whole ? systemctl('disable', '--now', ...units) : systemctl('stop', ...units));
      const done = removeFiles([socket, service, ...links]);
      const reload = await call(system, systemctl('daemon-reload'));
      const notes = [...(reload.ok ? [] : [`systemctl: ${reload.said}`]), ...kept.notes];
      return { ok: kept.ok, done: [...done, ...kept.done], notes };
    },
    async disarm(): Promise<ServiceReport> {
      const stopped = await call(system, systemctl('stop', `${NAME}.socket`));
      return {
        ok: stopped.ok,
        done: stopped.ok ? ['disarmed the socket'] : [],
        notes: stopped.ok ? [] : [stopped.said],
      };
    },
  };
}
