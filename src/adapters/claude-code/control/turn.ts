import type { TurnEnd } from '../../../runtime/control.ts';
import type { TurnResultLine } from './result.ts';
import type { StreamEvent } from './stream.ts';

/** What a line means for the turn of one message. */
export type TurnStep =
  | { readonly kind: 'accepted' }
  | {
      readonly kind: 'progress';
      readonly doing: 'running' | 'streaming' | 'tool' | 'retrying';
      readonly text?: string;
      readonly tool?: string;
    }
  | { readonly kind: 'note'; readonly text: string }
  | { readonly kind: 'end'; readonly end: TurnEnd }
  /** It ended before the message was in: the session can't take it. */
  | { readonly kind: 'refused'; readonly reason: string; readonly unknownSession: boolean };

/** Follows one message through the lines of the stream. */
export interface TurnReader {
  /** What this line means; nothing more comes after `end` or `refused`. */
  read(event: StreamEvent): readonly TurnStep[];
  /** The stream is over although the turn is not. */
  lost(exit: { readonly code: number | null; readonly signal: string | null }, stderr: string): TurnStep;
  readonly accepted: boolean;
}

/**
 * A reader for the message with this uuid. It is accepted once the program says so: by the message's lifecycle, by
 * giving it back, or by the beginning of a turn (M7). A turn that background work has started is not the message's.
 * While a sub-agent of the turn still runs, its end is not the end (R-08); the turn that the sub-agent's report starts
 * ends it.
 */
export function createTurnReader(uuid: string): TurnReader {
  const state = {
    accepted: false,
    over: false,
    agents: 0,
    shells: 0,
    held: undefined as TurnResultLine | undefined,
    errorCode: undefined as string | undefined,
  };

  const accept = (): readonly TurnStep[] => {
    if (state.accepted) return [];
    state.accepted = true;
    return [{ kind: 'accepted' }];
  };

  const finish = (result: TurnResultLine): TurnStep => {
    state.over = true;
    const limited = result.outcome === 'failed' && state.errorCode === 'max_output_tokens';
    const notes = [...deniedNotes(result), ...shellNotes(state.shells)];
    return {
      kind: 'end',
      end: {
        outcome: limited ? 'limited' : result.outcome,
        ...(result.text === undefined ? {} : { text: result.text }),
        ...(result.error === undefined ? {} : { error: result.error }),
        ...(notes.length > 0 ? { notes } : {}),
      },
    };
  };

  const resulted = (result: TurnResultLine): readonly TurnStep[] => {
    if (!state.accepted) {
      if (result.ownDoing || result.outcome === 'completed') return [];
      state.over = true;
      return [{ kind: 'refused', reason: result.error ?? 'it ended', unknownSession: result.unknownSession }];
    }
    const mine = result.uuids.length === 0 ? !result.ownDoing : result.uuids.includes(uuid);
    if (!mine && !(result.ownDoing && state.held)) return [];
    if (state.agents === 0 || result.outcome !== 'completed') return [finish(result)];
    state.held = result;
    return [
      { kind: 'note', text: 'a sub-agent still works in the background; the turn goes on when it reports' },
    ];
  };

  const read = (event: StreamEvent): readonly TurnStep[] => {
    switch (event.kind) {
      case 'lifecycle':
        return event.uuid === uuid && event.state !== 'cancelled' ? accept() : [];
      case 'replay':
        return event.uuid === uuid ? accept() : [];
      case 'init':
        return [...accept(), { kind: 'progress', doing: 'running' }];
      case 'text':
        return [{ kind: 'progress', doing: 'running', text: event.text }];
      case 'tool':
        return [{ kind: 'progress', doing: 'tool', tool: event.name }];
      case 'streaming':
        return [{ kind: 'progress', doing: 'streaming' }];
      case 'tool-result':
        return [{ kind: 'progress', doing: 'running' }];
      case 'retry':
        return [{ kind: 'progress', doing: 'retrying', text: retryText(event) }];
      case 'error':
        state.errorCode = event.code;
        return [];
      case 'background':
        state.agents = event.agents;
        state.shells = event.shells;
        return [];
      case 'result':
        return resulted(event.result);
      default:
        return [];
    }
  };

  return {
    read: (event) => (state.over ? [] : read(event)),
    lost(exit, stderr) {
      state.over = true;
      const how = exitWords(exit);
      const said = lastLine(stderr);
      if (!state.accepted) {
        const reason = said ?? `Claude Code ended ${how} before it took the message`;
        return { kind: 'refused', reason, unknownSession: stderr.includes('No conversation found') };
      }
      const stopped = exit.signal !== null || (exit.code !== null && exit.code > 128);
      return {
        kind: 'end',
        end: {
          outcome: stopped ? 'stopped' : 'failed',
          error: `Claude Code ended ${how} in the middle of the turn${said ? `: ${said}` : ''}`,
          exitCode: exit.code,
        },
      };
    },
    get accepted() {
      return state.accepted;
    },
  };
}

function retryText({ attempt, of }: { readonly attempt?: number; readonly of?: number }): string {
  return attempt === undefined
    ? 'the request to the model is repeated'
    : `the request to the model is repeated (${attempt}${of === undefined ? '' : ` of ${of}`})`;
}

function deniedNotes({ denied }: TurnResultLine): readonly string[] {
  if (denied.length === 0) return [];
  const names = [...new Set(denied)].join(', ');
  return [`${denied.length} tool call${denied.length === 1 ? ' was' : 's were'} refused: ${names}`];
}

function shellNotes(count: number): readonly string[] {
  if (count === 0) return [];
  return [`${count} background command${count === 1 ? ' still runs' : 's still run'}`];
}

function exitWords({
  code,
  signal,
}: {
  readonly code: number | null;
  readonly signal: string | null;
}): string {
  return signal === null ? `with code ${code ?? 'unknown'}` : `by ${signal}`;
}

function lastLine(text: string): string | undefined {
  return text
    .split('\n')
    .map((line) => line.trim())
    .findLast((line) => line !== '');
}
