import type { Refusal } from '../../../runtime/control.ts';
import type { Refused } from '../servers.ts';

/** What OpenCode's control refuses with: the reason, its kind, and what to try next. */

const LIST = 'See what waits: shadowob-connector session-approve';

/** The choices that there are when another process runs the session (M1). */
export function choices(sessionId: string, first = ''): string {
  return [
    first,
    'Choose with --when-owned:',
    'queue (sent when its turn has ended; deleted after a day),',
    'fork (goes on in a copy with a new id, this one stays as it is),',
    'or force (a second turn runs beside the first, and both write into one history).',
    `Or wait, and send again: session-send --session ${sessionId}`,
  ]
    .filter((part) => part !== '')
    .join(' ');
}

export function unreachable(url: string, reason: string): Refusal {
  return {
    reason: `the server at ${url} can’t be reached: ${reason}`,
    kind: 'network',
    next: 'Start it again, or name another one in SHADOWOB_CONNECTOR_OPENCODE_URL.',
  };
}

/** 401: the name of the variable is the way in. */
export function needsPassword({ endpoint }: Pick<Refused, 'endpoint'>): Refusal {
  const reason = endpoint.credentials
    ? `the server at ${endpoint.url} refuses the password of user ${endpoint.credentials.user}`
    : `the server at ${endpoint.url} asks for a password`;
  return {
    reason,
    kind: 'refused',
    next: 'Set OPENCODE_SERVER_PASSWORD (and OPENCODE_SERVER_USERNAME) to what it was started with.',
  };
}

/** The server's own words. */
export function serverRefused(url: string, status: number | undefined, words: string): Refusal {
  return {
    reason: `OpenCode refused${status === undefined ? '' : ` (status ${status})`}: ${words}`,
    kind: 'refused',
    next: `Asked of the server at ${url}; its log says more.`,
  };
}

export function noSuchSession(sessionId: string, url: string): Refusal {
  return {
    reason: `the server at ${url} has no session ${sessionId}`,
    kind: 'notFound',
    next: 'See: shadowob-connector session-list --runtime opencode --all',
  };
}

/** A1: what was not confirmed may still have arrived. */
export const NOT_CONFIRMED: Refusal = {
  reason: 'OpenCode did not confirm the message in time; it may have arrived',
  kind: 'timedOut',
  next: 'Look at the session before you send it again: shadowob-connector session-show',
};

export const STALE: Refusal = {
  reason: 'nobody waits for this answer any more: the turn that asked is over',
  kind: 'refused',
  next: LIST,
};

export function noSuchRequest(requestId: string): Refusal {
  return {
    reason: `no request ${requestId} waits for an answer: it was answered, withdrawn, or never there`,
    kind: 'notFound',
    next: LIST,
  };
}

export function leftOver(requestId: string): Refusal {
  return {
    reason: `request ${requestId} is left over from a turn that is over, and an answer would still grant it`,
    kind: 'refused',
    next: LIST,
  };
}

export function otherSession(requestId: string): Refusal {
  return {
    reason: `request ${requestId} belongs to another session`,
    kind: 'refused',
    next: LIST,
  };
}

export function badModel(text: string): Refusal {
  return {
    reason: `"${text}" is no model as OpenCode names them`,
    kind: 'refused',
    next: 'Write provider/model, as in: opencode models',
  };
}

export function unknownModel(text: string): Refusal {
  return {
    reason: `OpenCode has no model ${text}, and the name would stay with the session`,
    kind: 'refused',
    next: 'See: opencode models',
  };
}

export function noFolder(directory: string): Refusal {
  return {
    reason: `the folder that the session began in is not there: ${directory}`,
    kind: 'refused',
    next: 'Put it back, then send again: its tools would work in a folder that is missing.',
  };
}

export const NOTHING_RUNS: Refusal = {
  reason: 'no process that can be found runs a turn of this session, so nothing can be stopped',
  kind: 'refused',
  next: 'See: shadowob-connector session-list --state active',
};
