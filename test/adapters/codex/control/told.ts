import { createTurnReader, type TurnStep } from '../../../../src/adapters/codex/control/turn-reader.ts';
import type { Fields } from '../../../../src/adapters/codex/fields.ts';
import { RECORDED_THREAD, type RecordedTurn } from './recorded.ts';

/** One notification. */
export type Told = readonly [method: string, params: Fields];

/** The notifications of a recorded turn. */
export const toldOf = (turn: RecordedTurn): readonly Told[] =>
  turn.messages.flatMap(({ out, value }) =>
    out || value['id'] !== undefined
      ? []
      : [[String(value['method']), (value['params'] ?? {}) as Fields] as const],
  );

/** What a reader makes of a turn when the server has named it after so many notifications. */
export function read(turn: RecordedTurn, namedAfter = 0, told = toldOf(turn)): readonly TurnStep[] {
  const reader = createTurnReader(RECORDED_THREAD);
  return [
    ...told.slice(0, namedAfter).flatMap(([method, params]) => reader.read(method, params)),
    ...reader.began(turn.turnId),
    ...told.slice(namedAfter).flatMap(([method, params]) => reader.read(method, params)),
  ];
}
