import { afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { compiledBinary } from '../helpers/binary.ts';
import { startDaemonProcess } from '../runtime/daemon/daemon-process.ts';
import { createCleanup } from '../runtime/daemon/harness.ts';
import { rowsAt, startWrapped, untilTrue, wrapHome } from './wrap-bench.ts';

const RECORDINGS = resolve(import.meta.dir, '..', 'recordings', 'claude-code');
const cleanup = createCleanup();
afterEach(() => cleanup.run());
beforeAll(async () => void (await compiledBinary()), 120_000);

/** Says the next line of a recording whenever it is told to, and leaves with the end of its input. */
const REPLAY =
  'while IFS= read -r line; do case $line in *lab_emit*) IFS= read -r next <&3 && printf "%s\\n" "$next";; esac; done 3<"$0"';

const EMIT = '{"type":"lab_emit"}\n';
const PROMPT = '{"type":"user","message":{"role":"user","content":"words"}}\n';

interface Line {
  readonly type: string;
  readonly subtype?: string;
  readonly session_id?: string;
  readonly request_id?: string;
  readonly request?: { readonly subtype: string };
}

function linesOf(path: string): readonly string[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}

/** The keys' words as they are said on the socket (design §3). */
const ON_SOCKET: Readonly<Record<string, string>> = {
  running: 'working',
  waiting_for_approval: 'waiting_for_permission',
  blocked: 'waiting_for_input',
  completed: 'idle',
  stopped: 'idle',
  failed: 'idle',
};

/** The states that the answer key goes through, as the socket says them. */
function keyOf(scenario: string): readonly string[] {
  const truths = linesOf(join(RECORDINGS, scenario, 'expected.jsonl')).map((line) =>
    String(JSON.parse(line).truth),
  );
  const states = truths.flatMap((truth) => ON_SOCKET[truth] ?? []);
  return states.filter((state, index) => state !== states[index - 1]);
}

/** 2.1.197 writes no live status for `-p`, so its keys can't know what only the stream tells. */
const EXACT: Readonly<Record<string, readonly string[]>> = {
  's-can-use-tool@2.1.197': keyOf('s-can-use-tool'),
  's-two-turns@2.1.197': keyOf('s-two-turns'),
};

describe('recorded conversations through the wrapper, with a real service', () => {
  for (const scenario of [
    's-two-turns',
    's-two-turns@2.1.197',
    's-can-use-tool',
    's-can-use-tool@2.1.197',
    's-ask-user',
    's-interrupt',
    's-eof-midturn',
    's-no-prompt-tool',
  ]) {
    test(`S-712 S-714: ${scenario} goes through the states of its key, and its bytes are the recording’s`, async () => {
      const home = wrapHome(cleanup);
      const socket = join(home, 'c', 'daemon.sock');
      mkdirSync(join(home, 'c'), { mode: 0o700 });
      await startDaemonProcess(cleanup, socket);
      const recording = join(RECORDINGS, scenario, 'stdout.jsonl');
      const lines = linesOf(recording);
      const parsed: readonly Line[] = lines.map((line) => JSON.parse(line));
      const id = parsed.findLast(({ type }) => type === 'result')?.session_id ?? '';
      const wrapped = await startWrapped(cleanup, ['sh', '-c', REPLAY, recording], { home, socket });
      const seen: string[] = [];
      const stateNow = async (state: string): Promise<void> => {
        await untilTrue(async () =>
          (await rowsAt(socket)).some((row) => row.session_id === id && row.state === state),
        );
        if (seen.at(-1) !== state) seen.push(state);
      };
      // The editor's side was not recorded; what it said follows from what was answered.
      await wrapped.write(PROMPT);
      for (const [index, line] of parsed.entries()) {
        await wrapped.write(EMIT);
        if (line.type === 'system' && line.subtype === 'init') await stateNow('working');
        if (line.type === 'control_request' && line.request?.subtype === 'can_use_tool') {
          await stateNow(scenario === 's-ask-user' ? 'waiting_for_input' : 'waiting_for_permission');
          const response = { subtype: 'success', request_id: line.request_id, response: {} };
          await wrapped.write(`${JSON.stringify({ type: 'control_response', response })}\n`);
          await stateNow('working');
        }
        if (line.type !== 'result') continue;
        await stateNow('idle');
        if (parsed.slice(index).some(({ subtype }) => subtype === 'init')) await wrapped.write(PROMPT);
      }
      wrapped.closeInput();
      expect([await wrapped.exited, (await wrapped.output).equals(readFileSync(recording))]).toEqual([
        0,
        true,
      ]);
      expect(seen).toEqual([...(EXACT[scenario] ?? keyOf(scenario))]);
      await stateNow('ended');
      expect((await rowsAt(socket)).map((row) => row.session_id)).toEqual([id]);
    });
  }

  test('S-705: s-bad-input, which never names a session, is never reported', async () => {
    const home = wrapHome(cleanup);
    const socket = join(home, 'c', 'daemon.sock');
    mkdirSync(join(home, 'c'), { mode: 0o700 });
    await startDaemonProcess(cleanup, socket);
    const recording = join(RECORDINGS, 's-bad-input', 'stdout.jsonl');
    const wrapped = await startWrapped(cleanup, ['sh', '-c', 'read -r line; cat "$0"; exit 1', recording], {
      home,
      socket,
    });
    await wrapped.write('{"type":"user","mess\n');
    expect([await wrapped.exited, (await wrapped.output).equals(readFileSync(recording))]).toEqual([1, true]);
    expect(await rowsAt(socket)).toEqual([]);
  });
});
