import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The recordings of Claude Code: real files and hooks, with an answer key for every event. */
export const RECORDINGS = join(import.meta.dir, '..', '..', 'recordings', 'claude-code');

type Json = Readonly<Record<string, unknown>>;

/** One event of a recording with its key. Times are epoch milliseconds. */
export interface KeyRow {
  readonly scenario: string;
  /** 1-based line of `expected.jsonl`. */
  readonly keyLine: number;
  readonly at: number;
  readonly src: string;
  readonly what: string;
  readonly truth: string;
  /** The row's place in its own file, where it has one. */
  readonly file?: string;
  readonly line?: number;
  readonly transcriptState?: string | null;
  readonly hookState?: string;
  /** The row itself: a transcript row as text, a hook payload. */
  readonly text?: string;
  readonly hook?: Json;
  /** Live files and job files that changed at this event, in order. `content` is undefined for a removal. */
  readonly changed: readonly { readonly path: string; readonly content?: string }[];
  /** The session that the event is about, or the one that the recording is about at that time. */
  readonly sessionId?: string;
}

/** All scenarios, in the order of their names. */
export function scenarios(): readonly string[] {
  return readdirSync(RECORDINGS).filter((name) => existsSync(join(RECORDINGS, name, 'expected.jsonl')));
}

/** The lines of a recorded file; empty if the scenario has none. */
export function linesOf(scenario: string, file: string): readonly string[] {
  const path = join(RECORDINGS, scenario, file);
  return existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
    : [];
}

/** The session id that a transcript's rows carry. */
export function sessionOf(scenario: string, file: string): string {
  const row = linesOf(scenario, file)
    .map((line) => JSON.parse(line) as Json)
    .find((candidate) => typeof candidate['sessionId'] === 'string');
  return String(row?.['sessionId']);
}

/** One scenario's events in recorded order. */
export function recording(scenario: string): readonly KeyRow[] {
  const hooks = linesOf(scenario, 'hooks.jsonl').map((line) => JSON.parse(line) as Json);
  const keys = linesOf(scenario, 'expected.jsonl').map((line) => JSON.parse(line) as Json);
  const firstHook = keys.find((key) => key['src'] === 'hook');
  const zero = firstHook
    ? Number(hooks[Number(firstHook['line']) - 1]?.['ts']) * 1000 - Number(firstHook['t']) * 1000
    : 1_796_070_000_000;
  const live = linesOf(scenario, 'live-status.jsonl').map((line) => JSON.parse(line) as Json);
  const liveSession = new Map<string, string>();
  let nextLive = 0;
  let current: string | undefined;
  return keys.map((key, index) => {
    const src = String(key['src']);
    const changed: { path: string; content?: string }[] = [];
    if (src.startsWith('statefile')) {
      for (let found = false; !found && nextLive < live.length; nextLive += 1) {
        const version = live[nextLive] ?? {};
        const path = String(version['file']);
        changed.push(
          version['gone'] === true ? { path } : { path, content: contentText(version['content']) },
        );
        found = path.includes('sessions/');
        const id = sessionIdIn(version['content']);
        if (found && id) liveSession.set(path, id);
        if (found) current = liveSession.get(path) ?? current;
      }
    }
    const file = typeof key['file'] === 'string' ? key['file'] : undefined;
    const line = typeof key['line'] === 'number' ? key['line'] : undefined;
    const payload = src === 'hook' && line ? (hooks[line - 1]?.['input'] as Json) : undefined;
    if (payload) current = String(payload['session_id']);
    if (file && line) current = sessionOf(scenario, file);
    return {
      scenario,
      keyLine: index + 1,
      at: zero + Number(key['t']) * 1000,
      src,
      what: String(key['what']),
      truth: String(key['truth']),
      changed,
      ...(file ? { file } : {}),
      ...(line ? { line } : {}),
      ...(key['transcript_state'] !== undefined
        ? { transcriptState: key['transcript_state'] as string | null }
        : {}),
      ...(key['hook_state'] !== undefined ? { hookState: String(key['hook_state']) } : {}),
      ...(file && line ? { text: linesOf(scenario, file)[line - 1] ?? '' } : {}),
      ...(payload ? { hook: payload } : {}),
      ...(current ? { sessionId: current } : {}),
    };
  });
}

/** A torn version was recorded as the text that was read. */
function contentText(content: unknown): string {
  return typeof content === 'string' ? content : JSON.stringify(content);
}

function sessionIdIn(content: unknown): string | undefined {
  return typeof content === 'object' && content !== null && 'sessionId' in content
    ? String(content.sessionId)
    : undefined;
}

/** Working on a tool, running and streaming are one class: files can't tell them apart. */
export function classOf(state: string): string {
  return state === 'tool_call' || state === 'streaming' ? 'running' : state;
}
