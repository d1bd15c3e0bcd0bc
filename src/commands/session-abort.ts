import type { ControlContext } from '../adapters/adapter.ts';
import { withdrawLeft } from '../runtime/control/sweep.ts';
import type { AbortResult, RuntimeControl } from '../runtime/control.ts';
import { ConnectorError } from '../runtime/errors.ts';
import type { SessionRef } from '../runtime/session/session.ts';
import { oneLine } from '../runtime/session/text.ts';
import {
  capable,
  controlContext,
  controlOf,
  findTarget,
  readId,
  refusalError,
  sweepLines,
  type Target,
} from './acting.ts';
import { type Answer, defineCommand } from './command.ts';
import { refusalData } from './output/control-data.ts';

export const sessionAbort = defineCommand({
  name: 'session-abort',
  summary: 'stop a session’s turn, or end its process',
  details:
    'Asks the runtime to stop the running turn, and says stopped only when its end was seen. With --kill ends the process and all that it started (TERM, then KILL) and names what survived. Messages of ours that wait for the session are withdrawn.',
  args: {
    id: { type: 'positional', required: false, description: 'the session’s id, or its beginning' },
    runtime: { type: 'string', description: 'The runtime, by id', valueHint: 'id' },
    session: { type: 'string', description: 'The session’s id, or its beginning', valueHint: 'id' },
    kill: { type: 'boolean', description: 'End the process and everything it started' },
    'opencode-url': { type: 'string', description: 'An OpenCode server to ask', valueHint: 'url' },
  },
  examples: [
    { command: 'session-abort 5c67492c', says: 'stop its turn' },
    { command: 'session-abort 5c67492c --kill --json', says: 'end its processes; the answer as JSON' },
  ],
  async run(args, world): Promise<Answer> {
    const id = readId(args);
    if (id === undefined) {
      throw new ConnectorError(
        'usage',
        'session-abort needs a session',
        'See: shadowob-connector session-list',
      );
    }
    const { ref, known } = await findTarget(world, id, args);
    const control = await controlOf(world, ref.runtimeId);
    const context = controlContext(world, args);
    const result = await abortTarget(
      context,
      control,
      { ref, ...(known ? { known } : {}) },
      args.kill === true,
    );
    const failure = failureOf(result);
    return {
      kind: 'document',
      data: abortDocument(ref, result),
      text: () => (result.kind === 'stopped' ? `stopped: ${result.detail}` : ''),
      warnings: await sweepLines(context),
      ...(failure ? { failure } : {}),
    };
  },
});

/**
 * Stops a turn, or its process, and withdraws what waits for the session.
 *
 * @throws ConnectorError `unsupported`
 */
export async function abortTarget(
  context: ControlContext,
  control: RuntimeControl<ControlContext>,
  { ref, known }: Target,
  kill: boolean,
): Promise<AbortResult> {
  const abort = capable(control, 'abort', ref.runtimeId).bind(control);
  const left = await withdrawLeft(context, ref);
  const asked = await abort(context, { session: ref, kill, ...(known ? { known } : {}) });
  return withWithdrawn(asked, left);
}

/** Messages that nobody would have delivered are withdrawn, too; that alone is something done. */
function withWithdrawn(result: AbortResult, left: number): AbortResult {
  if (left === 0) return result;
  const words = `${left} waiting message${left === 1 ? '' : 's'} withdrawn`;
  if (result.kind === 'stopped') return { kind: 'stopped', detail: `${result.detail}; ${words}` };
  const nothingRan = result.kind === 'refused' && result.refusal.kind === 'refused';
  return nothingRan ? { kind: 'stopped', detail: `nothing ran; ${words}` } : result;
}

/** What came of it, as JSON. */
export function abortDocument(ref: SessionRef, result: AbortResult): Record<string, unknown> {
  return {
    ...ref,
    stopped: result.kind === 'stopped',
    ...(result.kind === 'stopped' ? { detail: result.detail } : {}),
    survivors: result.kind === 'survived' ? result.survivors : [],
    ...(result.kind === 'refused' ? refusalData(result.refusal) : {}),
  };
}

function failureOf(result: AbortResult): ConnectorError | undefined {
  if (result.kind === 'stopped') return undefined;
  if (result.kind === 'refused') return refusalError(result.refusal);
  const names = result.survivors.map(({ pid, command }) => oneLine(`${pid} ${command}`).trim());
  return new ConnectorError(
    'survived',
    `still running: ${names.join('; ') || 'a process that can’t be named'}`,
    'End them as their owner; some may need another user’s rights.',
  );
}
