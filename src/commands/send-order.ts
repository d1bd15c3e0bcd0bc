import { resolve } from 'node:path';
import { APPROVAL_POLICIES, type SendRequest, type SendTarget, type WhenOwned } from '../runtime/control.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { CONTROL, TEXT } from '../runtime/limits.ts';
import type { SessionRef } from '../runtime/session/session.ts';
import { controlOf, findTarget, readId, readSpan, readWord } from './acting.ts';
import { readMessage } from './message.ts';
import { spanWords } from './output/age.ts';
import type { World } from './world.ts';

/** What may be done when somebody else has the session. */
export const WHEN_OWNED: readonly WhenOwned[] = ['refuse', 'queue', 'fork', 'force'];

/** How a turn that may ask is run; shared with `session-create`. */
export const APPROVAL_ARGS = {
  approvals: {
    type: 'string',
    description: `What it may do without asking: ${APPROVAL_POLICIES.join(', ')} (default ask)`,
    valueHint: 'policy',
  },
  'approval-timeout': {
    type: 'string',
    description: `Deny what nobody has answered after this long (default ${spanWords(CONTROL.approvalMs)})`,
    valueHint: 'time',
  },
  keep: {
    type: 'string',
    description: `Keep its process this long after a turn (default: ${spanWords(CONTROL.keepMs)} for a new session, else not)`,
    valueHint: 'time',
  },
  'managed-server': {
    type: 'boolean',
    description:
      'OpenCode without a server of yours: keep the one that is started (loopback, generated password) for later turns',
  },
} as const;

/** What `session-send` is given. */
export interface SendArgs {
  readonly id?: string | undefined;
  readonly runtime?: string | undefined;
  readonly session?: string | undefined;
  readonly message?: string | undefined;
  readonly 'message-file'?: string | undefined;
  readonly new?: boolean | undefined;
  readonly dir?: string | undefined;
  readonly model?: string | undefined;
  readonly wait?: boolean | undefined;
  readonly timeout?: string | undefined;
  readonly 'when-owned'?: string | undefined;
  readonly approvals?: string | undefined;
  readonly 'approval-timeout'?: string | undefined;
  readonly keep?: string | undefined;
  readonly 'managed-server'?: boolean | undefined;
  readonly 'opencode-url'?: string | undefined;
}

/** A session, or the runtime of one that is to begin. */
export type Named = Pick<SessionRef, 'runtimeId'> & Partial<SessionRef>;

/**
 * Reads the whole order of a send: to whom, what, and how; asks for the text last, when the rest is known to be right.
 *
 * @throws ConnectorError with the category of what is wrong
 */
export async function readOrder(args: SendArgs, world: World) {
  const whenOwned = readWord('when-owned', args['when-owned'], WHEN_OWNED, 'refuse');
  const followMs = readSpan('timeout', args.timeout, { min: 1, max: CONTROL.keepMaxMs }) ?? TEXT.waitMs;
  const policy = readPolicy(args);
  const { target, ref } = await readTarget(args, world);
  const control = await controlOf(world, ref.runtimeId);
  const text = await readMessage(args, world);
  const request: SendRequest = {
    target,
    text,
    whenOwned,
    ...policy,
    ...(args.model === undefined ? {} : { model: args.model }),
    ...(args.wait === true ? { followMs } : {}),
  };
  return { request, control, ref };
}

/** Policy, time to answer, and time to stay, of a command line. */
export function readPolicy(
  args: Pick<SendArgs, 'approvals' | 'approval-timeout' | 'keep' | 'managed-server'>,
) {
  const range = { min: 1_000, max: CONTROL.keepMaxMs };
  const keepMs = readSpan('keep', args.keep, { min: 0, max: CONTROL.keepMaxMs });
  return {
    approvals: readWord('approvals', args.approvals, APPROVAL_POLICIES, 'ask'),
    approvalMs: readSpan('approval-timeout', args['approval-timeout'], range) ?? CONTROL.approvalMs,
    ...(keepMs === undefined ? {} : { keepMs }),
    ...(args['managed-server'] === true ? { managedServer: true } : {}),
  };
}

async function readTarget(args: SendArgs, world: World): Promise<{ target: SendTarget; ref: Named }> {
  const id = readId(args);
  if (args.new === true) {
    if (id !== undefined) {
      throw new ConnectorError('usage', '--new takes no session id', 'Leave out the id, or --new.');
    }
    return { target: { kind: 'new', workDir: resolve(world.cwd, args.dir ?? '.') }, ref: readRuntime(args) };
  }
  if (args.dir !== undefined) {
    throw new ConnectorError(
      'usage',
      '--dir is for a new session',
      'A session goes on in the folder it began in; for a new one: --new --dir',
    );
  }
  if (id === undefined) {
    throw new ConnectorError(
      'usage',
      'session-send needs a session',
      'Name one (shadowob-connector session-list), or begin one: --new --runtime <id>',
    );
  }
  const { known, ref } = await findTarget(world, id, args);
  if (!known) {
    throw new ConnectorError('notFound', 'this session is not listed yet', 'Try again in a moment.');
  }
  refuseSetUp(known.shown.state);
  return { target: { kind: 'session', session: known }, ref };
}

function readRuntime(args: SendArgs): Named {
  if (args.runtime !== undefined) return { runtimeId: args.runtime };
  throw new ConnectorError('usage', '--new needs --runtime', 'For example: --new --runtime claude-code');
}

/**
 * S8: text that is pushed at a set-up screen goes into its menu.
 *
 * @throws ConnectorError `refused`
 */
export function refuseSetUp(state: { readonly kind: string; readonly on?: string }): void {
  if (state.kind !== 'waiting' || state.on !== 'setup') return;
  throw new ConnectorError(
    'refused',
    'the session waits at a set-up screen, and a message would go into its menu',
    'Finish the set-up in its own terminal, then send again.',
  );
}
