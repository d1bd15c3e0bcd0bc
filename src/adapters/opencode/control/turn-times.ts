import { CONTROL } from '../../../runtime/limits.ts';

/** Times of a turn, milliseconds; tests shorten them. */
export interface TurnTimes {
  /** How long the server may take to say that it has the message. */
  readonly acceptMs: number;
  readonly ackMs: number;
  readonly interruptMs: number;
  /** How often the server is asked besides its events, so that no lost event lets a turn run for ever. */
  readonly pollMs: number;
  /** After `idle`, how long the last answer may take to be closed (seen: 0.33 s after an abort). */
  readonly settleMs: number;
  /** How long a server that has cut its stream may be out of reach before it counts as gone. */
  readonly lostMs: number;
  /** How long a message that was taken may wait for its turn to begin (seen: 2 s in a cold instance). */
  readonly beginMs: number;
}

export const TURN_TIMES: TurnTimes = {
  acceptMs: CONTROL.acceptMs,
  ackMs: CONTROL.ackMs,
  interruptMs: CONTROL.interruptMs,
  pollMs: 5_000,
  settleMs: 2_000,
  lostMs: 5_000,
  beginMs: 60_000,
};
