import { expect } from 'bun:test';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compiledBinary } from '../../helpers/binary.ts';
import { connectWire } from '../../runtime/daemon/wire-client.ts';
import { type Claude, prepareClaude } from '../lab/claude.ts';
import { prepareCodex } from '../lab/codex.ts';
import { inOwnWorld, type Lab, scenario } from '../lab/lab.ts';
import { gate, say, shell, text } from '../lab/models/script.ts';
import { runs, send, strangers } from '../lab/processes.ts';
import { ask } from '../lab/terminal.ts';
import { inTime, until } from '../lab/until.ts';

inOwnWorld();

type Json = Record<string, unknown>;

interface Row {
  readonly session_id: string;
  readonly agent: string;
  readonly state: string;
  readonly model?: string;
  readonly cwd?: string;
}

const connectorHome = (lab: Lab): string => join(lab.home, '.shadowob', 'connector');

async function startDaemon(lab: Lab): Promise<void> {
  expect((await lab.connector.run('daemon', 'start')).code).toBe(0);
  lab.onEnd(async () => void (await lab.connector.run('daemon', 'stop')));
}

/** Every state of every session on the socket, as they change. */
async function listen(lab: Lab): Promise<(agent: string) => readonly string[]> {
  const wire = await connectWire(join(connectorHome(lab), 'daemon.sock'));
  lab.onEnd(async () => wire.close());
  const seen = new Map<string, string[]>();
  const take = (frame: Json): void => {
    for (const row of (frame['payload'] as { sessions: Row[] }).sessions) {
      const states = seen.get(row.agent) ?? [];
      if (states.at(-1) !== row.state) states.push(row.state);
      seen.set(row.agent, states);
    }
  };
  take(await wire.ask({ service: 'sessions', op: 'subscribe' }));
  void (async () => {
    for (;;) take(await wire.next());
  })().catch(() => {
    // The connection ends with the lab.
  });
  return (agent) => seen.get(agent) ?? [];
}

async function rowsOf(lab: Lab): Promise<readonly Row[]> {
  const wire = await connectWire(join(connectorHome(lab), 'daemon.sock'));
  const reply = await wire.ask({ service: 'sessions', op: 'list' });
  wire.close();
  return (reply['payload'] as { sessions: Row[] }).sessions;
}

const says = (lab: Lab, agent: string, state: string) =>
  until(
    `${agent} to be ${state} on the socket`,
    async () => (await rowsOf(lab)).find((row) => row.agent === agent && row.state === state),
    { explain: async () => JSON.stringify(await rowsOf(lab)) },
  );

/** What an editor holds: Claude Code behind the wrapper, in stream-json. */
interface Editor {
  readonly pid: number;
  readonly exited: Promise<number>;
  readonly lines: readonly Json[];
  send(message: Json): Promise<void>;
  prompt(words: string): Promise<void>;
  /** Waits for the next line for which this holds. */
  hears(what: string, holds: (line: Json) => boolean): Promise<Json>;
  closeInput(): void;
}

const STREAM = [
  ...['claude', '-p', '--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'],
  ...['--permission-prompt-tool', 'stdio'],
];

function openEditor(lab: Lab, folder: string, command: readonly string[]): Editor {
  const child = Bun.spawn([...command], {
    cwd: folder,
    env: lab.env,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const lines: Json[] = [];
  const state = { rest: '', taken: 0 };
  void (async () => {
    const decoder = new TextDecoder();
    for await (const chunk of child.stdout) {
      const parts = (state.rest + decoder.decode(chunk, { stream: true })).split('\n');
      state.rest = parts.pop() ?? '';
      lines.push(...parts.map((line) => JSON.parse(line)));
    }
  })();
  const write = async (message: Json): Promise<void> => {
    await child.stdin.write(`${JSON.stringify(message)}\n`);
    await child.stdin.flush();
  };
  return {
    pid: child.pid,
    exited: child.exited,
    lines,
    send: write,
    prompt: (words) =>
      write({ type: 'user', message: { role: 'user', content: [{ type: 'text', text: words }] } }),
    hears: (what, holds) =>
      until(
        what,
        () => {
          const at = lines.findIndex((line, index) => index >= state.taken && holds(line));
          if (at < 0) return undefined;
          state.taken = at + 1;
          return lines[at];
        },
        { explain: () => JSON.stringify(lines.slice(-5)) },
      ),
    closeInput: () => void child.stdin.end(),
  };
}

const isResult = (line: Json): boolean => line['type'] === 'result';
const isInit = (line: Json): boolean => line['type'] === 'system' && line['subtype'] === 'init';

async function setUp(lab: Lab): Promise<{ folder: string; claude: Claude; shim: string }> {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  expect((await lab.connector.run('install-wrapper')).code).toBe(0);
  const settings = join(lab.home, '.config', 'Code', 'User', 'settings.json');
  const shim = JSON.parse(readFileSync(settings, 'utf8'))['claudeCode.claudeProcessWrapper'];
  return { folder, claude, shim };
}

/** The process of Claude Code itself below a wrapper. */
function claudeBelow(pid: number): number {
  const below = strangers().find((one) => parentOf(one.pid) === pid);
  if (!below) throw new Error(`nothing runs below ${pid}`);
  return below.pid;
}

function parentOf(pid: number): number {
  const status = existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, 'utf8') : '';
  return Number(/^PPid:\t(\d+)/m.exec(status)?.[1] ?? 0);
}

scenario(
  'claude-wrap: an editor’s session through the installed shim goes working, waiting, working, idle, ended',
  async (lab) => {
    const { folder, claude, shim } = await setUp(lab);
    const slow = await lab.barrier('slow');
    claude.model.on('Make it', say(shell(slow.command)), say(text('Made.')));
    claude.model.on('Again', say(text('Twice.')));
    await startDaemon(lab);
    const states = await listen(lab);

    const editor = openEditor(lab, folder, [shim, ...STREAM]);
    await editor.prompt('Make it');
    const { request_id } = await editor.hears('a request', (line) => line['type'] === 'control_request');
    const waiting = await says(lab, 'claude', 'waiting_for_permission');
    expect(waiting.cwd).toBe(folder);
    const response = { behavior: 'allow', updatedInput: { command: slow.command } };
    await editor.send({ type: 'control_response', response: { subtype: 'success', request_id, response } });
    await slow.reached();
    await says(lab, 'claude', 'working');
    await slow.release();
    expect(await editor.hears('the result', isResult)).toMatchObject({
      result: 'Made.',
      session_id: waiting.session_id,
    });
    await says(lab, 'claude', 'idle');
    await editor.prompt('Again');
    expect(await editor.hears('the second result', isResult)).toMatchObject({ result: 'Twice.' });
    editor.closeInput();
    expect(await inTime('the end', editor.exited)).toBe(0);
    await says(lab, 'claude', 'ended');
    await until('all states', () => states('claude').at(-1) === 'ended');
    // Before the first prompt the process has said itself that it is there.
    const seen = states('claude').slice(states('claude').indexOf('working'));
    expect(seen.slice(0, 4)).toEqual(['working', 'waiting_for_permission', 'working', 'idle']);
    expect(seen.at(-1)).toBe('ended');
  },
);

scenario(
  'claude-wrap: the stream is the same as without it, with no service and none of ours left',
  async (lab) => {
    const { folder, claude, shim } = await setUp(lab);
    claude.model.on('Say hello', say(text('Hello there, 日本.')));
    const run = async (command: readonly string[]): Promise<readonly unknown[]> => {
      const editor = openEditor(lab, folder, command);
      await editor.prompt('Say hello');
      await editor.hears('the result', isResult);
      editor.closeInput();
      expect(await inTime('the end', editor.exited)).toBe(0);
      return editor.lines.map((line) => [line['type'], line['subtype'], line['result']]);
    };
    const wrapped = await run([shim, ...STREAM]);
    expect(wrapped).toEqual([...(await run(STREAM))]);
    expect(wrapped.at(-1)).toEqual(['result', 'success', 'Hello there, 日本.']);
    await until('an empty world', () => strangers().every(({ command }) => !command.includes('claude')));
  },
);

for (const [signal, code] of [
  ['SIGTERM', 143],
  ['SIGKILL', 137],
] as const) {
  scenario(
    `claude-wrap: an editor that ends it with ${signal} in mid-turn leaves no Claude Code behind`,
    async (lab) => {
      const { folder, claude, shim } = await setUp(lab);
      const held = gate();
      claude.model.on('Think', say(text('Hm '), held, text('so.')));
      await startDaemon(lab);
      const editor = openEditor(lab, folder, [shim, ...STREAM]);
      await editor.prompt('Think');
      await held.reached();
      await says(lab, 'claude', 'working');
      const program = claudeBelow(editor.pid);
      send(editor.pid, signal);
      expect(await inTime('the end of the wrapper', editor.exited)).toBe(code);
      held.release();
      await until('the end of Claude Code', () => !runs(program));
    },
  );
}

scenario(
  'claude-wrap: /clear gives the process another session, and the old one ends (R-04)',
  async (lab) => {
    const { folder, claude, shim } = await setUp(lab);
    claude.model.on('First', say(text('One.')));
    claude.model.on('Second', say(text('Two.')));
    await startDaemon(lab);
    const editor = openEditor(lab, folder, [shim, ...STREAM]);
    await editor.prompt('First');
    const first = await editor.hears('the first result', isResult);
    await editor.prompt('/clear');
    await editor.hears('the end of /clear', isResult);
    await editor.prompt('Second');
    const init = await editor.hears('an init', isInit);
    await editor.hears('the second result', isResult);
    await until('the new session to be idle', async () =>
      (await rowsOf(lab)).some((row) => row.session_id === init['session_id'] && row.state === 'idle'),
    );
    expect(init['session_id']).not.toBe(first['session_id']);
    const old = (await rowsOf(lab)).find((row) => row.session_id === first['session_id']);
    // An ended row is shown for ten seconds more, and then no longer.
    expect(old?.state ?? 'ended').toBe('ended');
    editor.closeInput();
    expect(await inTime('the end', editor.exited)).toBe(0);
  },
);

scenario(
  'codex-wrap: a terminal session on a server of its own, observed and left without a trace',
  async (lab) => {
    const folder = await lab.folder('acme-app');
    const codex = await prepareCodex(lab, [folder]);
    const slow = await lab.barrier('slow');
    const thinking = gate();
    codex.model.on(
      'Install',
      say(thinking, shell(slow.command, 'May I install it?')),
      say(text('Installed.')),
    );
    await startDaemon(lab);
    const terminal = await lab.terminal({
      command: [await compiledBinary(), 'codex-wrap', '--', 'codex'],
      cwd: folder,
    });
    await terminal.shows(/GPT-5\.\d.* · /);
    await ask(terminal, 'Install left-pad');
    await thinking.reached();
    await says(lab, 'codex', 'working');
    thinking.release();
    await terminal.shows('Would you like to run the following command?');
    await says(lab, 'codex', 'waiting_for_permission');
    await terminal.answer('y', 'Would you like to run the following command?');
    await slow.reached();
    await says(lab, 'codex', 'working');
    await slow.release();
    await terminal.shows('Installed.');
    expect((await says(lab, 'codex', 'idle')).cwd).toBe(folder);
    // The terminal was its server's first client, not we.
    expect((await codex.firstRecords()).map((meta) => meta['originator'])).toEqual(['codex-tui']);

    await terminal.press('C-c');
    await terminal.press('C-c');
    await until('the end of the wrapper', () => !runs(terminal.pid), { explain: () => terminal.screen() });
    await says(lab, 'codex', 'ended');
    const left = () => strangers().filter(({ command }) => command.includes('app-server'));
    await until('the end of the server', () => left().length === 0, {
      explain: () => JSON.stringify(left()),
    });
    expect(
      readdirSync(connectorHome(lab)).filter((name) => name.endsWith('.sock') && name !== 'daemon.sock'),
    ).toEqual([]);
  },
);

scenario(
  'codex-wrap: when it is killed the session goes on, and the next one ends what is left',
  async (lab) => {
    const folder = await lab.folder('acme-app');
    const codex = await prepareCodex(lab, [folder]);
    codex.model.on('Say hello', say(text('Hello there.')));
    await startDaemon(lab);
    const wrap = [await compiledBinary(), 'codex-wrap', '--', 'codex'];
    // A shell between them, so that the terminal does not close with the wrapper.
    const terminal = await lab.terminal({
      command: ['bash', '-c', '"$@"; sleep 1000', 'bash', ...wrap],
      cwd: folder,
    });
    await terminal.shows(/GPT-5\.\d.* · /);
    const { pid } = await until('the wrapper', () =>
      strangers().find((one) => parentOf(one.pid) === terminal.pid),
    );
    const servers = () => strangers().filter(({ command }) => command.includes(`codex-wrap-${pid}.sock`));
    send(pid, 'SIGKILL');
    await until('the end of the wrapper', () => !runs(pid));
    await ask(terminal, 'Say hello');
    await terminal.shows('Hello there.');
    // Its terminal program and its server.
    for (const { pid: left, command } of servers()) if (command.includes('--remote')) send(left, 'SIGTERM');
    await until('the end of the terminal program', () =>
      servers().every(({ command }) => !command.includes('--remote')),
    );
    expect(servers().length).toBeGreaterThan(0);
    const second = await lab.terminal({ command: wrap, cwd: folder });
    await second.shows(/GPT-5\.\d.* · /);
    await until('the end of the first server', () => servers().length === 0, {
      explain: () => JSON.stringify(servers()),
    });
  },
);

scenario('codex-wrap: exec, and output that is no terminal, run as they are', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  codex.model.on('Say hello', say(text('Hello there.')));
  const wrap = [await compiledBinary(), 'codex-wrap', '--'];
  const exec = lab.start([...wrap, 'codex', 'exec', '--skip-git-repo-check', 'Say hello'], folder);
  expect([await inTime('the end of exec', exec.exited), exec.output().includes('Hello there.')]).toEqual([
    0,
    true,
  ]);
  const version = lab.start([...wrap, 'codex', '--version'], folder);
  expect([await version.exited, version.output()]).toEqual([0, 'codex-cli 0.171.0\n']);
  expect(existsSync(connectorHome(lab))).toBe(false);
});
