/** A Codex home as 0.171.0 leaves it: rollouts in folders by day, the first line over 20 KB. */
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { BENCH_NOW, type Generated } from './claude.ts';
import { createRandom, prose, type Random, uuid } from './random.ts';

const DAY = 24 * 60 * 60 * 1000;

export interface CodexOptions {
  readonly threads?: number;
  /** Tool rounds in each thread, on average. */
  readonly rounds?: number;
  /** Every so many threads one is packed (`.jsonl.zst`). */
  readonly packedEvery?: number;
  readonly seed?: number;
}

/** Writes `<home>/.codex/sessions/YYYY/MM/DD/rollout-….jsonl`. */
export function generateCodex(home: string, options: CodexOptions = {}): Generated {
  const random = createRandom(options.seed ?? 11);
  const threads = options.threads ?? 300;
  let bytes = 0;
  for (let n = 0; n < threads; n += 1) {
    const at = BENCH_NOW - Math.floor(random() * 200 * DAY);
    const id = timeUuid(at, random);
    const rounds = Math.round((options.rounds ?? 12) * 2 * random());
    const text = rollout(id, at, `Thread ${n}: ${prose(random, 40)}`, rounds, random);
    const packed = options.packedEvery !== undefined && n % options.packedEvery === 0;
    const path = join(dayFolder(home, at), `rollout-${stamp(at)}-${id}.jsonl${packed ? '.zst' : ''}`);
    const content = packed ? zstdCompressSync(Buffer.from(text)) : Buffer.from(text);
    writeFileSync(path, content);
    const time = new Date(at + 60_000);
    utimesSync(path, time, time);
    bytes += content.length;
  }
  return { files: threads, bytes };
}

function dayFolder(home: string, at: number): string {
  const [year = '', month = '', day = ''] = new Date(at).toISOString().slice(0, 10).split('-');
  const folder = join(home, '.codex', 'sessions', year, month, day);
  mkdirSync(folder, { recursive: true });
  return folder;
}

function stamp(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replaceAll(':', '-');
}

/** A version 7 UUID: thread and turn ids carry their time. */
function timeUuid(at: number, random: Random): string {
  const time = at.toString(16).padStart(12, '0');
  const rest = uuid(random);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${rest.slice(15)}`;
}

function rollout(id: string, at: number, prompt: string, rounds: number, random: Random): string {
  const state = { ordinal: 0, at };
  const line = (type: string, payload: Record<string, unknown>): string => {
    const timestamp = new Date(state.at).toISOString();
    state.at += 200;
    const text = JSON.stringify({ timestamp, ordinal: state.ordinal, type, payload });
    state.ordinal += 1;
    return `${text}\n`;
  };
  const turn = timeUuid(at + 5, random);
  const event = (payload: Record<string, unknown>): string =>
    line('event_msg', { turn_id: turn, ...payload });
  const item = (content: Record<string, unknown>): string =>
    event({ type: 'item_completed', thread_id: id, item: content });
  const message = (role: string, text: string): string =>
    line('response_item', { type: 'message', role, content: [{ type: 'input_text', text }] });

  const parts = [
    line('session_meta', {
      ...{ id, session_id: id, timestamp: new Date(at).toISOString(), cwd: '/home/dev/acme-app' },
      ...{ originator: 'codex-tui', cli_version: '0.171.0', source: 'cli', thread_source: 'user' },
      ...{ model_provider: 'openai', history_mode: 'paginated', git: { branch: 'main' } },
      base_instructions: { text: prose(random, 21_000) },
    }),
    event({
      type: 'task_started',
      root_turn_id: turn,
      started_at: Math.floor(at / 1000),
      model_context_window: 258_400,
    }),
    message('developer', prose(random, 4600)),
    line('turn_context', {
      turn_id: turn,
      cwd: '/home/dev/acme-app',
      model: 'gpt-5.5',
      approval_policy: 'on-request',
    }),
    message('user', prompt),
    item({
      type: 'UserMessage',
      id: uuid(random),
      content: [{ type: 'text', text: prompt, text_elements: [] }],
    }),
  ];
  for (let round = 0; round < rounds; round += 1) {
    const call = `call_${round}`;
    parts.push(
      line('response_item', {
        type: 'function_call',
        name: 'exec_command',
        arguments: '{"cmd":"ls"}',
        call_id: call,
      }),
      item({ type: 'CommandExecution', id: call, command: ['/bin/bash', '-lc', 'ls'], status: 'completed' }),
      line('response_item', { type: 'function_call_output', call_id: call, output: prose(random, 2000) }),
      event({ type: 'token_count', info: { total_token_usage: { total_tokens: 1240 } } }),
    );
  }
  if (random() < 0.9) {
    const text = 'Done.';
    parts.push(
      item({
        type: 'AgentMessage',
        id: uuid(random),
        content: [{ type: 'Text', text }],
        phase: 'final_answer',
      }),
      message('assistant', text),
      event({ type: 'task_complete', root_turn_id: turn, last_agent_message: text, duration_ms: 1368 }),
    );
  }
  return parts.join('');
}
