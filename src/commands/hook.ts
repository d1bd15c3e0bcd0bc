import { endpointOf, socketPathIn } from '../runtime/daemon/endpoint.ts';
import {
  formatRecord,
  type JournalAgent,
  type JournalRecord,
  payloadOf,
} from '../runtime/daemon/journal/record.ts';
import { appendJournal } from '../runtime/daemon/journal/writer.ts';
import { FIELDS_READ, type Fields, type HookOp, mapHook, textOf } from '../runtime/daemon/sink/mapping.ts';
import { glanceOnLinux, ownerPid, type ProcessGlance } from '../runtime/daemon/sink/owner.ts';
import { type Patience, post } from '../runtime/daemon/sink/post.ts';
import { fieldsOfPrefix } from '../runtime/daemon/sink/prefix.ts';
import { readBounded } from '../runtime/daemon/sink/stdin.ts';
import { formatNanos } from '../runtime/daemon/stamp.ts';
import { FIELD, HOOK } from '../runtime/limits.ts';
import { connectorHome } from '../runtime/store/home.ts';

/**
 * The hook sink: `hook --agent claude|codex [--socket PATH]` (S-401 … S-420). It runs inside of the agent's own
 * turns, so it imports next to nothing, always exits 0, and never writes to stdout: an agent may take what a hook
 * prints for a decision (S-402). It reads one payload, writes one journal line, sends one report, and is gone.
 */

/** What the sink touches of the outside world. */
export interface HookDeps {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  readonly home: () => Promise<string>;
  readonly pid: number;
  readonly parent: number;
  /** Nanoseconds since 1970 at which the hook fired. */
  readonly firedAt: bigint;
  readonly stdin: () => ReadableStream<Uint8Array>;
  readonly glance: () => Promise<(pid: number) => ProcessGlance | undefined>;
  readonly post: typeof post;
  /** Diagnostics; only called when they are enabled (S-936). */
  readonly say: (line: string) => void;
  readonly exit: (code: 0) => void;
}

/** Runs the sink to its end. Never rejects; the last thing it does is to exit with 0. */
export async function runHook(argv: readonly string[], deps: HookDeps = systemDeps()): Promise<void> {
  try {
    await sink(argv, deps);
  } catch (error) {
    // Whatever it is, the agent must not feel it (S-402, S-509).
    say(deps, 'session_hook_skipped', {
      gate: 'defect',
      error: error instanceof Error ? error.name : 'unknown',
    });
  }
  deps.exit(0);
}

const FIRED_AT = BigInt(Math.round((performance.timeOrigin + performance.now()) * 1_000)) * 1_000n;

function systemDeps(): HookDeps {
  return {
    env: process.env,
    platform: process.platform,
    home: systemHome,
    pid: process.pid,
    parent: process.ppid,
    firedAt: FIRED_AT,
    stdin: () => Bun.stdin.stream(),
    glance: systemGlance,
    post,
    say: (line) => void process.stderr.write(line),
    exit: (code) => process.exit(code),
  };
}

/** Nearly always in the environment; the module that asks the system costs a twentieth of the sink. */
async function systemHome(): Promise<string> {
  const named = process.platform === 'win32' ? process.env['USERPROFILE'] : process.env['HOME'];
  return named || (await import('node:os')).homedir();
}

async function systemGlance(): Promise<(pid: number) => ProcessGlance | undefined> {
  if (process.platform === 'linux') return glanceOnLinux;
  // Windows has no way to the ancestors that starts no process; the service finds the owner by the id.
  if (process.platform !== 'darwin') return () => undefined;
  const { glanceOnMac } = await import('../runtime/daemon/sink/owner-mac.ts');
  return glanceOnMac();
}

async function sink(argv: readonly string[], deps: HookDeps): Promise<void> {
  // Read even when nothing will come of it: the agent must never meet a closed pipe.
  const input = await readBounded(deps.stdin());
  const options = parseArguments(argv);
  if (!options) return skip(deps, 'usage');
  if (!input.ended) return skip(deps, 'read');
  const fields = input.cut ? fieldsOfPrefix(input.text, FIELDS_READ) : parseWhole(input.text);
  if (!fields) return skip(deps, 'json');
  const sessionId = textOf(fields['session_id']);
  if (sessionId === undefined || !textOf(fields['hook_event_name']))
    return skip(deps, input.cut ? 'read' : 'identity');
  const op = mapHook(options.agent, fields);
  if (!op) return skip(deps, 'event');
  const record = await recordOf(options.agent, sessionId, op, fields, deps);
  const socketPath = options.socket ?? socketPathIn(connectorHome(deps.env, await deps.home()));
  await report(socketPath, record, deps);
}

interface HookArguments {
  readonly agent: JournalAgent;
  readonly socket: string | undefined;
}

/** `undefined` for anything that is no usage of ours: then nothing is done, silently (C-149). */
function parseArguments(argv: readonly string[]): HookArguments | undefined {
  const options = new Map([['--agent', 'claude']]);
  const rest = [...argv];
  while (rest.length > 0) {
    const [, name = '', inline] = /^(--agent|--socket)(?:=(.*))?$/s.exec(rest.shift() ?? '') ?? [];
    const value = inline ?? rest.shift();
    if (name === '' || !value) return undefined;
    options.set(name, value);
  }
  const agent = options.get('--agent');
  return agent === 'claude' || agent === 'codex' ? { agent, socket: options.get('--socket') } : undefined;
}

function parseWhole(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text.replace(/^\ufeff/, ''));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    // Not JSON: nothing to report (S-405).
    return undefined;
  }
}

async function recordOf(
  agent: JournalAgent,
  session_id: string,
  op: HookOp,
  fields: Fields,
  deps: HookDeps,
): Promise<JournalRecord> {
  const ts = formatNanos(deps.firedAt);
  const pid = ownerPid({ agent, env: deps.env, parent: deps.parent, glance: await deps.glance() });
  const base = {
    ts,
    seq: `${deps.pid}-${deps.firedAt}`,
    agent,
    session_id,
    ...(pid === undefined ? {} : { pid }),
  };
  if (op.op === 'end') return { ...base, op: 'end', ...within('reason', op.reason, FIELD.nameChars) };
  const agentId = textOf(fields['agent_id']);
  return {
    ...base,
    ...op,
    ...within('cwd', fields['cwd'], FIELD.pathChars),
    // Codex names the session itself in its own hooks; that is no sub-agent.
    ...within('agent_id', agentId === session_id ? undefined : agentId, FIELD.idChars),
    ...within('transcript_path', fields['transcript_path'], FIELD.pathChars),
    ...within('model', fields['model'], FIELD.nameChars),
  };
}

/** A best-effort field; one that the service would refuse is left out, so that the event still counts. */
function within<Name extends string>(
  name: Name,
  value: unknown,
  chars: number,
): Partial<Record<Name, string>> {
  const text = textOf(value);
  const fields: Partial<Record<Name, string>> = {};
  if (text !== undefined && text.length <= chars) fields[name] = text;
  return fields;
}

/** The journal first, then the socket (S-503): what the journal holds need not be waited for. */
async function report(socketPath: string, record: JournalRecord, deps: HookDeps): Promise<void> {
  const { agent, session_id: sessionId } = record;
  const now = Number(deps.firedAt / 1_000_000n);
  const journal = appendJournal({ socketPath, agent, sessionId, now }, formatRecord(record));
  say(deps, 'session_hook_journal', {
    outcome: journal === 'journaled' ? 'journaled' : 'journal_failed',
    why: journal,
  });
  const line = `${JSON.stringify({ service: 'sessions', op: record.op, payload: payloadOf(record) })}\n`;
  const address = endpointOf(socketPath, deps.platform).path;
  const outcome = await deps.post(address, line, patienceFor(journal === 'journaled', deps));
  say(deps, 'session_hook_report', { outcome });
}

/**
 * A socket keeps what was written for a service that takes its time, and the journal has it too: nothing is gained by
 * waiting for one that is busy. A named pipe forgets what was not read when its writer leaves.
 * Whoever asks for the outcome (`hooks-status` does) waits for it.
 */
function patienceFor(journaled: boolean, deps: HookDeps): Patience {
  if (!journaled) return { allMs: HOOK.waitMs };
  return deps.platform === 'win32' || isAskedFor(deps)
    ? { allMs: HOOK.journaledWaitMs }
    : { allMs: HOOK.journaledWaitMs, replyMs: HOOK.journaledReplyMs };
}

function skip(deps: HookDeps, gate: 'usage' | 'read' | 'json' | 'identity' | 'event'): void {
  say(deps, 'session_hook_skipped', { gate });
}

function isAskedFor({ env }: HookDeps): boolean {
  const level = env['SHADOWOB_CONNECTOR_LOG']?.trim().toLowerCase();
  return level === 'debug' || level === 'trace';
}

/** Only when the log level asks for it, and never a payload: names and outcomes (S-936). */
function say(deps: HookDeps, event: string, fields: Readonly<Record<string, string>>): void {
  if (!isAskedFor(deps)) return;
  const words = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
  deps.say(`${[event, ...words].join(' ')}\n`);
}
