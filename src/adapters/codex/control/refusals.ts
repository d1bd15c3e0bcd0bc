import type { Decision, PendingRequest, Question, Refusal } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import type { Owner, OwnerKind } from './owner.ts';

/** The refusals of Codex's control, each with its reason and what to try next. */

/** G9: a sub-agent's thread takes no messages; resumed on its own it dies on the first one. */
export function subAgent(parentId: string): Refusal {
  return {
    reason: 'this is a sub-agent’s thread, which takes messages from its parent only',
    kind: 'unsupported',
    next: `Send it to the parent: shadowob-connector session-send ${parentId}`,
  };
}

export function archived(sessionId: string): Refusal {
  return {
    reason: 'the session is archived',
    kind: 'refused',
    next: `Bring it back first: codex unarchive ${sessionId}`,
  };
}

export function noFolder(workDir: string): Refusal {
  return {
    reason: `the folder that the session works in is not there: ${workDir}`,
    kind: 'refused',
    next: 'Put it back, or open the session with Codex itself: codex resume -C <folder>',
  };
}

export function unreachable(reason: string): Refusal {
  return {
    reason: `Codex’s app-server can’t be reached: ${reason}`,
    kind: 'network',
    next: 'Try again; see: shadowob-connector session-why',
  };
}

/** Nobody may say that it was not sent. */
export function notConfirmed(reason: string): Refusal {
  return {
    reason: `Codex has not said that it has the message: ${reason}`,
    kind: 'timedOut',
    next: 'Look at the session before you send it again: shadowob-connector session-show',
  };
}

const WHO: Readonly<Record<OwnerKind, string>> = {
  exec: 'codex exec',
  terminal: 'a terminal',
  client: 'another program',
  old: 'an older Codex',
};

/** Who holds it, as a user would say it. */
export function ownerWords(owner: Owner): string {
  switch (owner.kind) {
    case 'process':
      return `${WHO[owner.by]} (process ${owner.identity.pid})`;
    case 'server':
      return `Codex’s app-server (process ${owner.address.pid ?? 'unknown'})`;
    case 'elsewhere':
      return 'a process in a container or on another computer';
    case 'unknown':
    case 'nobody':
      return 'another process';
  }
}

const CHOICES = '--when-owned queue (waits until it has left), or --when-owned fork (goes on in a copy)';

/** M1: a thread has one writer, and Codex itself refuses a second one. */
export function held(owner: Owner, sessionId: string): Refusal {
  const exec = owner.kind === 'process' && owner.by === 'exec';
  const why = exec ? ', and what is queued there is lost when it ends' : '';
  return {
    reason: `${ownerWords(owner)} has it open${why}`,
    kind: 'ownedElsewhere',
    next: `shadowob-connector session-send ${sessionId} ${CHOICES}`,
  };
}

/** The owner works, and a message that it queues is read only when the turn has ended. */
export function busy(owner: Owner, sessionId: string): Refusal {
  return {
    reason: `${ownerWords(owner)} is in the middle of a turn, and takes messages only after it`,
    kind: 'ownedElsewhere',
    next: `shadowob-connector session-send ${sessionId} --when-owned queue`,
  };
}

/** A queued message was taken back, because nobody took it. */
export function notTaken(owner: Owner, seconds: number, sessionId: string): Refusal {
  return {
    reason: `${ownerWords(owner)} did not take the message within ${seconds} s; it was taken back`,
    kind: 'timedOut',
    next: `To leave it there: shadowob-connector session-send ${sessionId} --when-owned queue`,
  };
}

/** Somebody asked for it, by `session-abort`. */
export function takenBack(owner: Owner): Refusal {
  return {
    reason: `withdrawn before ${ownerWords(owner)} had taken it`,
    kind: 'refused',
    next: 'Send it again when the session is free.',
  };
}

/** It could not be taken back either, so nobody may say that it was not sent. */
export function leftBehind(owner: Owner): Refusal {
  return {
    reason: `${ownerWords(owner)} has not taken the message, and it lies in Codex’s queue still`,
    kind: 'timedOut',
    next: 'Look at the session before you send it again: shadowob-connector session-show',
  };
}

/** The words with which Codex 0.171 refuses, as what they mean. */
export function codexRefused(message: string, sessionId: string): Refusal {
  if (message.includes('already has an active writer')) return held({ kind: 'unknown' }, sessionId);
  if (message.includes('is archived')) return archived(sessionId);
  if (message.includes('no rollout found') || message.includes('not materialized')) {
    return {
      reason: 'Codex has nothing of this session on disk: it begins with its first message',
      kind: 'notFound',
      next: 'Type the first message where it is open, or begin one: shadowob-connector session-send --new',
    };
  }
  return {
    reason: `Codex refused: ${message}`,
    kind: 'refused',
    next: 'See: shadowob-connector session-show',
  };
}

/** the way without an app-server, said before it is taken. */
export function onlyExec(reason: string, sessionId: string): Refusal {
  return {
    reason: `this Codex has no app-server that can be used (${reason}); codex exec would ask nothing, deny all that it must ask for, and leave that setting with the session`,
    kind: 'unsupported',
    next: `If that is what you want: shadowob-connector session-send ${sessionId} --approvals deny`,
  };
}

/** The answer came too late. */
export const NO_ANSWER: Refusal = {
  reason: 'nobody waits for this answer any more: the turn that asked has ended',
  kind: 'refused',
  next: 'See what waits: shadowob-connector session-approve',
};

export const NO_TURN: Refusal = {
  reason: 'no turn is running in this session',
  kind: 'refused',
  next: 'See: shadowob-connector session-list --state active',
};

export const NOBODY: Refusal = {
  reason: 'no process has this session open, so nothing can be stopped',
  kind: 'refused',
  next: 'See: shadowob-connector session-list --state active',
};

export function cantBegin(reason: string): Refusal {
  return {
    reason: `Codex did not begin a session: ${reason}`,
    kind: 'refused',
    next: 'Try it by hand: codex app-server',
  };
}

export function noSuchFolder(workDir: string): Refusal {
  return { reason: `there is no folder ${workDir}`, kind: 'refused', next: 'Name one that is there: --dir' };
}

/** M1: unlike elsewhere, nothing can force it. */
export function cantForce(owner: Owner, sessionId: string): Refusal {
  return {
    reason: `${ownerWords(owner)} has it open, and Codex lets no second process in`,
    kind: 'ownedElsewhere',
    next: `shadowob-connector session-send ${sessionId} ${CHOICES}`,
  };
}

export function byKeyboard(owner: Owner, sessionId: string): Refusal {
  const name = ownerWords(owner);
  return {
    reason: `${name} has it open, and nothing from outside stops just its turn`,
    kind: 'unsupported',
    next: `Press Esc there, or end the program: shadowob-connector session-abort ${sessionId} --kill`,
  };
}

export function notOurs(owner: Owner): Refusal {
  return {
    reason: `${ownerWords(owner)} has it open, and can’t be ended from here`,
    kind: 'unsupported',
    next: 'Stop it there.',
  };
}

/** K1: its end would be the end of the others, too. */
export function sharedServer(owner: Owner, others: number, sessionId: string): Refusal {
  const count = `${others} other session${others === 1 ? '' : 's'}`;
  return {
    reason: `${ownerWords(owner)} holds ${count} too, and is not ended for one`,
    kind: 'unsupported',
    next: `Stop just the turn: shadowob-connector session-abort ${sessionId}`,
  };
}

export function doesNotStop(sessionId: string): Refusal {
  return {
    reason: `Codex did not stop the turn within ${CONTROL.interruptMs / 1_000} s`,
    kind: 'timedOut',
    next: `To end its process: shadowob-connector session-abort ${sessionId} --kill`,
  };
}

export function wrongAnswer(request: PendingRequest, decision: Decision): Refusal {
  return {
    reason: `this ${request.kind} takes ${request.allows.join(', ')}, not ${decision}`,
    kind: 'refused',
    next: `shadowob-connector session-approve ${request.requestId} --help`,
  };
}

export function missingAnswer(requestId: string, question: Question): Refusal {
  return {
    reason: `question ${question.id} has no answer: ${question.text}`,
    kind: 'refused',
    next: `shadowob-connector session-approve ${requestId} --answers '{"1":["…"]}'`,
  };
}

/** A2: the id belongs to nothing that waits. */
export function stale(requestId: string): Refusal {
  return {
    reason: `no request ${requestId} waits in this session: it was answered, withdrawn, or never there`,
    kind: 'notFound',
    next: 'See what waits: shadowob-connector session-approve',
  };
}
