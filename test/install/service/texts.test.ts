import { afterEach, describe, expect, test } from 'bun:test';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { agentPlist, LABEL, launchdManager, xmlText } from '../../../src/install/service/launchd.ts';
import { linger, unlinger, userWord } from '../../../src/install/service/linger.ts';
import { serviceManager } from '../../../src/install/service/manager.ts';
import {
  execWord,
  serviceUnit,
  socketUnit,
  systemdManager,
  unitPath,
} from '../../../src/install/service/systemd.ts';
import { type ServiceSpec, type ServiceSystem, UnfitPath } from '../../../src/install/service/types.ts';
import { TASK, taskXml, windowsManager } from '../../../src/install/service/windows.ts';
import type { RunResult } from '../../../src/runtime/process/types.ts';
import { createCleanup, tempFolder } from '../../runtime/daemon/harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const spec: ServiceSpec = {
  program: ['/opt/tools/shadowob-connector'],
  home: '/home/me/.shadowob/connector',
  socketPath: '/home/me/.shadowob/connector/daemon.sock',
  logPath: '/home/me/.shadowob/connector/daemon.log',
  always: false,
};

const exited = (code: number, stdout = ''): RunResult => ({
  kind: 'exited',
  code,
  signal: null,
  stdout,
  stderr: '',
  stdoutBytes: new Uint8Array(),
  bytesSeen: 0,
  timedOut: false,
  truncated: false,
  survivors: [],
});

/** A system whose managers answer as told; what they were called with. */
function fake(platform: NodeJS.Platform, answer: (line: string) => RunResult = () => exited(0)) {
  const userHome = tempFolder(cleanup);
  const calls: string[] = [];
  const system: ServiceSystem = {
    platform,
    env: {},
    userHome,
    uid: 501,
    run: async ({ argv }) => {
      calls.push(argv.join(' '));
      return answer(argv.join(' '));
    },
    pause: async () => {},
  };
  return { system, calls, userHome, spec: { ...spec, home: join(userHome, 'connector') } };
}

describe('systemd (S-338 S-340 C-133 C-134)', () => {
  test('the socket unit: any client starts the service, 0600', () => {
    expect(socketUnit(spec)).toBe(`[Unit]
Description=shadowob-connector: socket of the daemon

[Socket]
ListenStream=/home/me/.shadowob/connector/daemon.sock
SocketMode=0600
DirectoryMode=0700

[Install]
WantedBy=sockets.target
`);
  });

  test('D11 R-34: the service unit ends only the daemon itself, and has neither [Install] nor Restart', () => {
    expect(serviceUnit(spec)).toBe(`[Unit]
Description=shadowob-connector: knows what every coding agent here is doing
Requires=shadowob-connector-daemon.socket
After=shadowob-connector-daemon.socket

[Service]
ExecStart="/opt/tools/shadowob-connector" "daemon" "run" "--started-by" "systemd" "--log-file" "/home/me/.shadowob/connector/daemon.log" "--socket" "/home/me/.shadowob/connector/daemon.sock"
KillMode=process
`);
    expect(serviceUnit({ ...spec, always: true })).toContain(
      'KillMode=process\nRestart=on-failure\nRestartSec=5\n\n[Install]\nWantedBy=default.target\n',
    );
  });

  test('`%`, `$`, backslash and quote are escaped where each means something; line breaks are refused', () => {
    expect(execWord('/a b/50%/$HOME/"x"\\y')).toBe('"/a b/50%%/$$HOME/\\"x\\"\\\\y"');
    expect(unitPath('/a b/50%/$HOME')).toBe('/a b/50%%/$HOME');
    expect(() => execWord('/a\nExecStartPre=/bin/rm')).toThrow(UnfitPath);
    expect(() => unitPath('/a\r')).toThrow(UnfitPath);
  });

  test('D5: install is idempotent and names the command that keeps it after log-out; uninstall takes all back', async () => {
    const {
      system,
      calls,
      spec: own,
      userHome,
    } = fake('linux', (line) => exited(0, line.startsWith('loginctl') ? 'no' : ''));
    const manager = systemdManager(system);
    const first = await manager.install(own);
    expect([first.ok, first.done.length]).toEqual([true, 3]);
    expect(first.notes.join()).toMatch(/loginctl enable-linger \S+/);
    expect(calls.slice(0, 2)).toEqual([
      'systemctl --user daemon-reload',
      'systemctl --user enable --now shadowob-connector-daemon.socket',
    ]);
    const again = await manager.install(own);
    expect(again.done).toEqual(['enabled shadowob-connector-daemon.socket']);
    await manager.uninstall(own);
    expect(manager.installed()).toBe(false);
    expect(existsSync(join(userHome, '.config/systemd/user/shadowob-connector-daemon.service'))).toBe(false);
    expect(await manager.uninstall(own)).toEqual({ ok: true, done: [], notes: [] });
  });

  test('D5: with consent lingering is switched on once, written down, and taken back with the rest', async () => {
    const state = { linger: 'no' };
    const b = fake('linux', (line) => {
      if (line.startsWith('loginctl enable-linger')) state.linger = 'yes';
      if (line.startsWith('loginctl disable-linger')) state.linger = 'no';
      return exited(0, line.startsWith('loginctl show-user') ? state.linger : '');
    });
    const manager = systemdManager(b.system);
    const mark = join(b.spec.home, 'linger.json');
    const spec = { ...b.spec, linger: true };
    const lingering = () =>
      b.calls.filter((line) => /able-linger/.test(line)).map((line) => line.split(' ')[1]);
    expect((await manager.install(spec)).done.at(-1)).toContain('outlive the log-out');
    expect(statSync(mark).mode & 0o777).toBe(0o600);
    expect((await manager.install(spec)).done.join()).not.toContain('log-out');
    expect(lingering()).toEqual(['enable-linger']);
    expect((await manager.uninstall(spec)).done.at(-1)).toContain('end with the log-out again');
    expect([state.linger, existsSync(mark), lingering()]).toEqual([
      'no',
      false,
      ['enable-linger', 'disable-linger'],
    ]);
    await manager.uninstall(spec);
    expect(lingering()).toHaveLength(2);
  });

  test('D5: lingering that was on before us stays; without consent, or refused, nothing is written down', async () => {
    const on = fake('linux', (line) => exited(0, line.startsWith('loginctl show-user') ? 'yes' : ''));
    const manager = systemdManager(on.system);
    await manager.install({ ...on.spec, linger: true });
    await manager.uninstall(on.spec);
    expect(on.calls.filter((line) => line.includes('able-linger'))).toEqual([]);
    const refused = fake('linux', (line) => exited(line.startsWith('loginctl enable') ? 1 : 0, 'no'));
    const report = await systemdManager(refused.system).install({ ...refused.spec, linger: true });
    expect([report.ok, report.notes.join()]).toEqual([true, expect.stringContaining('enable-linger')]);
    expect(existsSync(join(refused.spec.home, 'linger.json'))).toBe(false);
  });

  test('D5: units that were removed by hand: their links, the held socket and the lingering go all the same', async () => {
    const state = { linger: 'no', active: true };
    const b = fake('linux', (line) => {
      if (line.startsWith('loginctl enable-linger')) state.linger = 'yes';
      if (line.startsWith('loginctl disable-linger')) state.linger = 'no';
      if (line.startsWith('systemctl --user stop')) state.active = false;
      if (line.includes('is-active')) return exited(state.active ? 0 : 3);
      return exited(0, line.startsWith('loginctl show-user') ? state.linger : '');
    });
    const manager = systemdManager(b.system);
    await manager.install({ ...b.spec, linger: true });
    const folder = join(b.userHome, '.config/systemd/user');
    const link = join(folder, 'sockets.target.wants', 'shadowob-connector-daemon.socket');
    mkdirSync(join(folder, 'sockets.target.wants'));
    symlinkSync(join(folder, 'shadowob-connector-daemon.socket'), link);
    for (const { path } of manager.files(b.spec)) rmSync(path);
    const report = await manager.uninstall(b.spec);
    expect(report.ok).toBe(true);
    expect(report.done.join()).toContain('end with the log-out again');
    expect(lstatSync(link, { throwIfNoEntry: false })).toBeUndefined();
    expect(state).toEqual({ linger: 'no', active: false });
    expect(await manager.uninstall(b.spec)).toEqual({ ok: true, done: [], notes: [] });
  });

  test('D5: in an environment without a name the user is told by number', async () => {
    expect([userWord({ USER: 'me' }, 7), userWord({ LOGNAME: 'you' }, 7), userWord({}, 7)]).toEqual([
      'me',
      'you',
      '7',
    ]);
    const b = fake('linux', (line) => exited(0, line.startsWith('loginctl show-user') ? 'no' : ''));
    mkdirSync(b.spec.home, { recursive: true });
    await linger(b.system, { home: b.spec.home, linger: true }, '7');
    await unlinger(b.system, b.spec);
    expect(b.calls.filter((line) => line.includes('able-linger'))).toEqual([
      'loginctl enable-linger 7',
      'loginctl disable-linger 7',
    ]);
  });

  test('D6: a systemd that ends what lingers is named; another one is not', async () => {
    const notes = async (version: string) => {
      const b = fake('linux', (line) =>
        exited(0, line.startsWith('loginctl show-user') ? 'yes' : line.includes('--version') ? version : ''),
      );
      return (await systemdManager(b.system).install(b.spec)).notes.join();
    };
    expect(await notes('systemd 255 (255.4-1ubuntu8)\n+PAM')).toContain('systemd 255 may end it');
    expect(await notes('systemd 256 (256.1)')).toBe('');
  });

  test('R-34: with a start at login that is no longer wanted, its link goes, too', async () => {
    const { system, calls, spec: own, userHome } = fake('linux', () => exited(0, 'yes'));
    const manager = systemdManager(system);
    await manager.install({ ...own, always: true });
    expect(calls).toContain(
      'systemctl --user enable --now shadowob-connector-daemon.socket shadowob-connector-daemon.service',
    );
    expect(calls.join()).not.toContain('disable');
    const wants = join(userHome, '.config/systemd/user/default.target.wants');
    mkdirSync(wants, { recursive: true });
    writeFileSync(join(wants, 'shadowob-connector-daemon.service'), '');
    await manager.install(own);
    expect(calls).toContain('systemctl --user disable shadowob-connector-daemon.service');
  });

  test('an enable that fails is tried five times and then said', async () => {
    const {
      system,
      calls,
      spec: own,
    } = fake('linux', (line) => exited(line.includes('enable --now') ? 1 : 0, 'no bus'));
    const report = await systemdManager(system).install(own);
    expect([report.ok, report.notes[0]]).toEqual([false, 'systemctl: no bus']);
    expect(calls.filter((line) => line.includes('enable --now'))).toHaveLength(5);
  });
});

describe('launchd (S-338)', () => {
  test('the agent has a socket of mode 384, and neither RunAtLoad nor KeepAlive', () => {
    const plist = agentPlist(spec);
    expect(plist).toContain('<key>SockPathMode</key>\n      <integer>384</integer>');
    expect(plist).toContain('<key>Listener</key>');
    expect(plist).toContain('<key>AbandonProcessGroup</key>\n  <true/>');
    expect(plist).not.toMatch(/RunAtLoad|KeepAlive/);
    expect(agentPlist({ ...spec, always: true })).toContain('<key>RunAtLoad</key>');
    expect(xmlText('a&b<c>')).toBe('a&amp;b&lt;c&gt;');
    expect(() => xmlText('a\ufffd')).toThrow(UnfitPath);
  });

  test('D4: an old job is waited for until it is gone before the new one is loaded', async () => {
    const state = { prints: 0 };
    const {
      system,
      calls,
      spec: own,
      userHome,
    } = fake('darwin', (line) => {
      if (!line.includes('print')) return exited(0);
      state.prints += 1;
      return exited(state.prints <= 3 ? 0 : 1);
    });
    const report = await launchdManager(system).install(own);
    expect(report.ok).toBe(true);
    const plist = join(userHome, 'Library/LaunchAgents', `${LABEL}.plist`);
    expect(calls.at(-1)).toBe(`launchctl bootstrap gui/501 ${plist}`);
    expect(calls.indexOf(`launchctl bootout gui/501/${LABEL}`)).toBe(1);
    expect(readFileSync(plist, 'utf8')).toBe(agentPlist(own));
  });
});

describe('what was removed by hand (S-338)', () => {
  test('launchd: a job without its file is unloaded; a second time there is nothing', async () => {
    const state = { loaded: true };
    const b = fake('darwin', (line) => {
      if (line.includes('bootout')) state.loaded = false;
      return exited(line.includes('print') && !state.loaded ? 113 : 0);
    });
    const manager = launchdManager(b.system);
    expect(await manager.uninstall(b.spec)).toEqual({ ok: true, done: [`unloaded ${LABEL}`], notes: [] });
    expect(await manager.uninstall(b.spec)).toEqual({ ok: true, done: [], notes: [] });
  });

  test('Windows: a task without its file is deleted; a second time there is nothing', async () => {
    const state = { there: true };
    const b = fake('win32', (line) => {
      if (line.includes('/Delete')) state.there = false;
      return exited(line.includes('/Query') && !state.there ? 1 : 0);
    });
    const manager = windowsManager(b.system, b.spec.home);
    expect(await manager.uninstall(b.spec)).toMatchObject({ ok: true, done: [`removed the task "${TASK}"`] });
    expect(await manager.uninstall(b.spec)).toEqual({ ok: true, done: [], notes: [] });
  });
});

describe('Windows and the choice', () => {
  test('W6: a hidden task at log-on, without the limits that tasks have by themselves', () => {
    const xml = taskXml({ ...spec, program: ['C:\\Tools & more\\shadowob-connector.exe'] }, 'PC\\me');
    expect(xml).toContain('<Command>"C:\\Tools &amp; more\\shadowob-connector.exe"</Command>');
    expect(xml).toContain('<Hidden>true</Hidden>');
    expect(xml).toContain('<ExecutionTimeLimit>PT0S</ExecutionTimeLimit>');
    expect(xml).toContain('<DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>');
    expect(() => taskXml({ ...spec, program: ['C:\\"'] }, 'me')).toThrow(UnfitPath);
  });

  test('each system has its manager; Linux without a user manager has none', () => {
    expect(serviceManager(fake('darwin').system, '/h')?.kind).toBe('launchd');
    expect(serviceManager(fake('win32').system, '/h')?.kind).toBe('windows-task');
    expect(serviceManager(fake('linux').system, '/h')).toBeUndefined();
  });
});
