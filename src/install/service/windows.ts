import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { call, removeFiles, writeFiles } from './files.ts';
import {
  type ServiceFile,
  type ServiceManager,
  type ServiceReport,
  type ServiceSpec,
  type ServiceSystem,
  UnfitPath,
} from './types.ts';

/** The name of the task. */
export const TASK = 'shadowob-connector daemon';

function xmlText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML 1.0 can't hold these, escaped or not.
  if (/[\u0000-\u001f"]/.test(text))
    throw new UnfitPath('a path with a quote or control character fits into no task');
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** One argument as Windows programs split them: a backslash before the closing quote is doubled. */
function quoted(word: string): string {
  return `"${xmlText(word).replace(/(\\+)$/, '$1$1')}"`;
}

/**
 * A task at log-on of this user, hidden, without rights beyond the user's own, without the limits that a task has by
 * itself: three days, and no start on battery (W6).
 */
export function taskXml(spec: ServiceSpec, user: string): string {
  const [program = '', ...first] = spec.program;
  const words = [...first, 'daemon', 'start', '--started-by', 'windows-task', '--socket', spec.socketPath];
  return [
    '<?xml version="1.0" encoding="UTF-16"?>',
    '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">',
    '  <RegistrationInfo>',
    '    <Description>shadowob-connector: knows what every coding agent here is doing</Description>',
    '  </RegistrationInfo>',
    '  <Triggers>',
    '    <LogonTrigger>',
    '      <Enabled>true</Enabled>',
    `      <UserId>${xmlText(user)}</UserId>`,
    '    </LogonTrigger>',
    '  </Triggers>',
    '  <Principals>',
    '    <Principal id="Author">',
    `      <UserId>${xmlText(user)}</UserId>`,
    '      <LogonType>InteractiveToken</LogonType>',
    '      <RunLevel>LeastPrivilege</RunLevel>',
    '    </Principal>',
    '  </Principals>',
    '  <Settings>',
    '    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>',
    '    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>',
    '    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>',
    '    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>',
    '    <Hidden>true</Hidden>',
    '  </Settings>',
    '  <Actions Context="Author">',
    '    <Exec>',
    `      <Command>${quoted(program)}</Command>`,
    `      <Arguments>${words.map(quoted).join(' ')}</Arguments>`,
    '    </Exec>',
    '  </Actions>',
    '</Task>',
    '',
  ].join('\r\n');
}

/** The task scheduler (W6). It only starts the daemon; between log-ons commands start it themselves. */
export function windowsManager(system: ServiceSystem, home: string): ServiceManager {
  const path = join(home, 'daemon-task.xml');
  const user = [system.env['USERDOMAIN'], system.env['USERNAME']].filter(Boolean).join('\\');
  const files = (spec: ServiceSpec): readonly ServiceFile[] => [
    { path, text: taskXml(spec, user), encoding: 'utf16le' },
  ];
  return {
    kind: 'windows-task',
    words: 'a task at log-on',
    files,
    installed: () => existsSync(path),
    async install(spec): Promise<ServiceReport> {
      const written = writeFiles(files(spec));
      if (!written.ok) return { ok: false, done: written.done, notes: [] };
      const made = await call(system, ['schtasks', '/Create', '/TN', TASK, '/XML', path, '/F']);
      return {
        ok: made.ok,
        done: [...written.done, ...(made.ok ? [`registered the task "${TASK}"`] : [])],
        notes: made.ok ? [] : [`schtasks: ${made.said}`],
      };
    },
    async uninstall(): Promise<ServiceReport> {
      // The file is only what the task was made from: without it the task still starts the daemon.
      const there = existsSync(path) || (await call(system, ['schtasks', '/Query', '/TN', TASK])).ok;
      if (!there) return { ok: true, done: [], notes: [] };
      const gone = await call(system, ['schtasks', '/Delete', '/TN', TASK, '/F']);
      const done = [...(gone.ok ? [`removed the task "${TASK}"`] : []), ...removeFiles([path])];
      return { ok: gone.ok, done, notes: gone.ok ? [] : [`schtasks: ${gone.said}`] };
    },
    disarm: async () => ({ ok: true, done: [], notes: [] }),
  };
}
