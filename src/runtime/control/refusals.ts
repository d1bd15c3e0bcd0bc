import type { Refusal } from '../control.ts';

/** The refusals that a host gives itself, each with its reason and what to try next. */

export function tooManyWait(count: number): Refusal {
  return {
    reason: `${count} messages wait for this session already`,
    kind: 'refused',
    next: 'Try again when they are sent, or withdraw them: shadowob-connector session-abort',
  };
}

export function cantKeep(code: string): Refusal {
  return {
    reason: `the message can’t wait: it could not be written down (${code})`,
    kind: 'refused',
    next: 'Make room in the connector home, or send it when the session is free.',
  };
}

export function waitedTooLong(reason: string): Refusal {
  return {
    reason: `it waited too long: ${reason}`,
    kind: 'timedOut',
    next: 'Send it again, or send it to a fork: --when-owned fork',
  };
}

export const WITHDRAWN: Refusal = {
  reason: 'withdrawn by session-abort before it was sent',
  kind: 'refused',
  next: 'Send it again when the session is free.',
};

export const HOST_ENDED: Refusal = {
  reason: 'the process of ours that would have sent it was ended first',
  kind: 'refused',
  next: 'Send it again.',
};

export const NO_TURN: Refusal = {
  reason: 'no turn is running in this session',
  kind: 'refused',
  next: 'To end its process: shadowob-connector session-abort --kill',
};

export function doesNotStop(sessionId: string, seconds: number): Refusal {
  return {
    reason: `the runtime did not stop its turn within ${seconds} s`,
    kind: 'timedOut',
    next: `To end its process: shadowob-connector session-abort ${sessionId} --kill`,
  };
}
