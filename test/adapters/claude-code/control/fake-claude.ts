/**
 * A program that speaks Claude Code's recorded protocol (2.1.332) and does what a message tells it to. Run by tests in
 * place of `claude`. What it was given goes to the file that `FAKE_CLAUDE_LOG` names, one JSON line each.
 *
 * Messages: `ask` asks for a permission; `hang` works until it is interrupted; `die` exits in the middle of a turn;
 * `orphan` leaves a process in its group and exits; anything else is answered with its length. With `FAKE_CLAUDE_GATE`
 * it takes a message only once that file is there.
 */
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const args = process.argv.slice(2);
const after = (flag: string) => (args.includes(flag) ? args[args.indexOf(flag) + 1] : undefined);
const sessionId = after('--session-id') ?? after('--resume') ?? 'none';
const env = process.env;
const sessions = join(env['HOME'] ?? '/', '.claude', 'sessions');
const liveFile = join(sessions, `${process.pid}.json`);
const pending = new Map<string, (response: { behavior: string; message?: string }) => void>();
const state = { interrupt: () => {}, busy: Promise.resolve() };

const log = (entry: object): void => {
  const file = env['FAKE_CLAUDE_LOG'];
  if (file) appendFileSync(file, `${JSON.stringify(entry)}\n`);
};
const say = (line: object): boolean => process.stdout.write(`${JSON.stringify(line)}\n`);

function startTicks(): string {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

log({ start: args, pid: process.pid, cwd: process.cwd(), configDir: env['CLAUDE_CONFIG_DIR'] ?? null });
if (process.platform === 'linux') {
  mkdirSync(sessions, { recursive: true });
  const live = {
    pid: process.pid,
    sessionId,
    procStart: startTicks(),
    entrypoint: 'sdk-cli',
    kind: 'interactive',
  };
  writeFileSync(liveFile, JSON.stringify({ ...live, version: '2.1.332', status: 'idle' }));
}
const leave = (code: number): never => {
  rmSync(liveFile, { force: true });
  process.exit(code);
};
if (env['FAKE_CLAUDE_STUBBORN']) process.on('SIGTERM', () => log({ ignored: 'SIGTERM' }));
else process.on('SIGTERM', () => leave(143));
if (env['FAKE_CLAUDE_UNKNOWN'] && args.includes('--resume')) {
  console.error(`No conversation found with session ID: ${sessionId}`);
  const errors = [`No conversation found with session ID: ${sessionId}`];
  say({ type: 'result', subtype: 'error_during_execution', is_error: true, errors });
  leave(1);
}

const result = (uuid: string, fields: object): boolean =>
  say({ subtype: 'success', is_error: false, user_message_uuids: [uuid], ...fields, type: 'result' });

async function turn(uuid: string, text: string): Promise<void> {
  log({ message: text });
  const gate = env['FAKE_CLAUDE_GATE'];
  while (gate && !existsSync(gate)) await Bun.sleep(20);
  say({ type: 'command_lifecycle', command_uuid: uuid, state: 'started' });
  say({ type: 'system', subtype: 'init', session_id: sessionId });
  say({ type: 'user', uuid, isReplay: true });
  if (text === 'die') leave(7);
  if (text === 'orphan') {
    const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
    log({ orphan: child.pid });
    leave(7);
  }
  if (text === 'hang') {
    const child = spawn('sh', ['-c', 'sleep 1000 & wait'], { stdio: 'ignore', detached: true });
    log({ grandchild: child.pid });
    await new Promise<void>((resolve) => {
      state.interrupt = resolve;
    });
    // The whole of what the tool has started, as the real program does.
    process.kill(-(child.pid ?? 0), 'SIGKILL');
    say({
      type: 'result',
      subtype: 'error_during_execution',
      is_error: true,
      terminal_reason: 'aborted_tools',
    });
    return;
  }
  if (text === 'ask') {
    const request_id = crypto.randomUUID();
    const request = {
      subtype: 'can_use_tool',
      tool_name: 'Bash',
      input: { command: 'rm -rf src' },
      tool_use_id: 't1',
    };
    const answer = new Promise<{ behavior: string; message?: string }>((resolve) =>
      pending.set(request_id, resolve),
    );
    say({ type: 'control_request', request_id, request });
    const { behavior, message } = await answer;
    result(uuid, { result: `${behavior}${message ? `: ${message}` : ''}` });
    return;
  }
  result(uuid, { result: `${text.length} units` });
}

type Line = {
  type: string;
  uuid: string;
  request_id: string;
  request: { subtype: string };
  message: { content: [{ text: string }] };
  response: { request_id: string; response: { behavior: string; message?: string } };
};

function take(line: Line): void {
  if (line.type === 'control_request') {
    say({ type: 'control_response', response: { subtype: 'success', request_id: line.request_id } });
    if (line.request.subtype === 'interrupt') state.interrupt();
    return;
  }
  if (line.type === 'control_response') {
    const { request_id, response } = line.response;
    log({ answer: response });
    say(line);
    pending.get(request_id)?.(response);
    return;
  }
  state.busy = state.busy.then(() => turn(line.uuid, line.message.content[0].text));
}

const decoder = new TextDecoder();
let rest = '';
for await (const chunk of Bun.stdin.stream()) {
  const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
  rest = lines.pop() ?? '';
  for (const text of lines) take(JSON.parse(text));
}
await state.busy;
leave(0);
