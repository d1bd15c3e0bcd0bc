import type { Adapter, ControlContext } from '../adapters/adapter.ts';
import { labelOf } from '../adapters/catalog.ts';
import { insideFirst } from '../runtime/control/inside.ts';
import { listRecords } from '../runtime/control/record.ts';
import { leftMessages, sweepHosts } from '../runtime/control/sweep.ts';
import type { Refusal, RuntimeControl } from '../runtime/control.ts';
import { socketPathIn } from '../runtime/daemon/endpoint.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { run } from '../runtime/process/spawn.ts';
import type { Session, SessionRef } from '../runtime/session/session.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { chosenAdapters, collect } from './collect.ts';
import { lookAround } from './daemon-look.ts';
import { likelyHolder } from './daemon-reach.ts';
import { readFilter, type SessionFilter } from './filter.ts';
import { parseSpan } from './output/age.ts';
import { resolveSession } from './resolve.ts';
import { nearest } from './suggest.ts';
import { adapterContext, type World } from './world.ts';

/**
 * What acting on sessions gets of the world. A server that the user names with `--opencode-url` goes the way of the
 * environment, since the host that follows the turn must find it, too.
 */
export function controlContext(
  world: World,
  args: { readonly 'opencode-url'?: string | undefined } = {},
): ControlContext {
  const url = args['opencode-url'];
  return {
    ...adapterContext(world),
    ...(url === undefined ? {} : { env: { ...world.env, SHADOWOB_CONNECTOR_OPENCODE_URL: url } }),
    connectorHome: connectorHome(world.env, world.home),
    self: world.self,
    version: world.version,
    run,
  };
}

type Control = RuntimeControl<ControlContext>;

/**
 * How one runtime is acted on.
 *
 * @throws ConnectorError `unsupported` for a runtime that can't be, naming those that can
 */
export async function controlOf(world: World, runtimeId: string): Promise<Control> {
  const filter = readFilter({ runtime: runtimeId }, world.cwd, world.now());
  const [adapter] = await chosenAdapters(world, filter);
  const control = adapter && (await controlInside(adapter));
  if (control) return control;
  const able = (await world.adapters()).filter((one) => one.control).map((one) => one.id);
  throw new ConnectorError(
    'unsupported',
    `${labelOf(runtimeId)}: sessions can’t be acted on yet`,
    `Messages can be sent to: ${able.join(', ')}`,
  );
}

/**
 * One capability of a runtime's control.
 *
 * @throws ConnectorError `unsupported` when this runtime can't do that
 */
export function capable<Name extends keyof Control>(
  control: Control,
  name: Name,
  runtimeId: string,
): NonNullable<Control[Name]> {
  const member = control[name];
  if (member) return member as NonNullable<Control[Name]>;
  const what = { send: 'messages', abort: 'aborting', create: 'new sessions' }[String(name)] ?? String(name);
  throw new ConnectorError(
    'unsupported',
    `${labelOf(runtimeId)}: ${what} are not possible from outside`,
    'What each runtime can do: shadowob-connector runtime-scan',
  );
}

/** The session that a command is about. `known` is absent for one that only a process of ours knows yet. */
export interface Target {
  readonly ref: SessionRef;
  readonly known?: Session;
}

/**
 * Finds the session that an id, or its beginning, means.
 *
 * @throws ConnectorError `notFound` or `ambiguous`
 */
export async function findTarget(
  world: World,
  id: string,
  args: { readonly runtime?: string | undefined; readonly 'opencode-url'?: string | undefined },
): Promise<Target> {
  const filter = readFilter({ all: true, ...args }, world.cwd, world.now());
  const look = await collect(world, filter);
  try {
    const known = resolveSession(look.monitor, id);
    return { ref: known.ref, known };
  } catch (thrown) {
    const hosted = hostedSession(world, id, args.runtime);
    if (hosted) return { ref: hosted };
    const reported = await reportedSession(world, filter, id);
    if (reported) return { ref: reported.ref, known: reported };
    throw thrown;
  }
}

/** A session without a file yet, which only the daemon knows: pi writes none before the first prompt. */
async function reportedSession(
  world: World,
  filter: SessionFilter,
  id: string,
): Promise<Session | undefined> {
  const look = await lookAround(world, filter, true);
  if (look.from !== 'daemon') return undefined;
  try {
    return resolveSession(look.monitor, id);
  } catch {
    // Not there either, or one of several: what our own look said about it is the answer.
    return undefined;
  }
}

/** A session that we have begun and that has no file yet. */
export function hostedSession(world: World, id: string, runtime: string | undefined): SessionRef | undefined {
  const wanted = id.trim();
  const found = listRecords(connectorHome(world.env, world.home))
    .map((record) => record.session)
    .filter((ref) => ref.sessionId === wanted && (runtime === undefined || ref.runtimeId === runtime));
  return found.length === 1 ? found[0] : undefined;
}

/** The id of a command: its word, or `--session` as the existing connector has it; never both. */
export function readId(args: {
  readonly id?: string | undefined;
  readonly session?: string | undefined;
}): string | undefined {
  if (args.id !== undefined && args.session !== undefined && args.id !== args.session) {
    throw new ConnectorError('usage', 'the session is named twice', 'Give its id once.');
  }
  return args.id ?? args.session;
}

/** A refusal as an error of the command. */
export function refusalError({ kind, reason, next }: Refusal): ConnectorError {
  return new ConnectorError(kind, reason, next);
}

/**
 * Ends what killed hosts of ours have left; called by everything that acts, so that no process of ours runs on unseen
 * (K1). Gives a line for each, and for messages whose host was killed while they waited.
 */
export async function sweepLines(context: ControlContext): Promise<readonly string[]> {
  const orphans = await sweepHosts(context);
  const left = await leftMessages(context);
  const ended = orphans.map(({ session, pid, ended: gone }) =>
    gone
      ? `ended process ${pid}, which a killed process of ours had left in session ${session.sessionId}`
      : `process ${pid} of session ${session.sessionId} was left by a killed process of ours and can’t be ended`,
  );
  const byDaemon = left.length > 0 && likelyHolder(socketPathIn(context.connectorHome)) !== undefined;
  const waiting = left.map(({ session, count }) => waitingWords(session.sessionId, count, byDaemon));
  return [...ended, ...waiting];
}

/** What becomes of messages whose host was killed: a daemon delivers them, else the next message takes them along. */
export function waitingWords(sessionId: string, count: number, byDaemon: boolean): string {
  const what = `${count} message${count === 1 ? '' : 's'} for session ${sessionId} wait${count === 1 ? 's' : ''}`;
  const fate = byDaemon
    ? 'the daemon sends what waits once its owner rests'
    : 'without anybody to deliver, sent with the next one';
  return `${what}: ${fate}; withdrawn by session-abort`;
}

/**
 * A word of a fixed list.
 *
 * @throws ConnectorError `badValue`, naming the words
 */
export function readWord<Word extends string>(
  flag: string,
  text: string | undefined,
  words: readonly Word[],
  usual: Word,
): Word {
  if (text === undefined) return usual;
  const found = words.find((word) => word === text);
  if (found) return found;
  const hint = nearest(text, words);
  throw new ConnectorError(
    'badValue',
    `--${flag}: "${text}" is not known${hint ? `; did you mean "${hint}"?` : ''}`,
    `It takes ${words.join(', ')}.`,
  );
}

/**
 * A length of time in milliseconds.
 *
 * @throws ConnectorError `badValue`
 */
export function readSpan(
  flag: string,
  text: string | undefined,
  range: { readonly min: number; readonly max: number },
): number | undefined {
  if (text === undefined) return undefined;
  const ms = text === '0' ? 0 : parseSpan(text);
  if (ms !== undefined && ms >= range.min && ms <= range.max) return ms;
  throw new ConnectorError(
    'badValue',
    `--${flag}: "${text}" is no length of time that it takes`,
    'Try 90s, 10m, or 2h.',
  );
}

/** A runtime's control with the way through our extension before its own (R-47). */
async function controlInside(adapter: Adapter): Promise<Control | undefined> {
  const control = await adapter.control?.();
  return control && insideFirst(adapter.id, control);
}

/** Adapters that can be acted on. */
export async function actingAdapters(
  world: World,
  runtime: string | undefined,
): Promise<readonly { readonly adapter: Adapter; readonly control: Control }[]> {
  const filter = readFilter({ runtime }, world.cwd, world.now());
  const adapters = await chosenAdapters(world, filter);
  const loaded = adapters.map(async (adapter) => ({ adapter, control: await controlInside(adapter) }));
  return (await Promise.all(loaded)).flatMap(({ adapter, control }) =>
    control ? [{ adapter, control }] : [],
  );
}
