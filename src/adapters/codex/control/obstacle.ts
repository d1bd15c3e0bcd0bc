import type { Obstacle } from '../../../runtime/control/driver.ts';
import type { ControlContext } from '../../adapter.ts';
import type { Owner, OwnerKind } from './owner.ts';
import { busy, held, ownerWords } from './refusals.ts';
import { recordedTurn } from './rest.ts';

/** Who is in the way of a message (M1). A server takes it; so does a terminal program that rests, from Codex's queue. */
export function obstacleOf(owner: Owner, context: ControlContext, threadId: string): Obstacle | undefined {
  switch (owner.kind) {
    case 'nobody':
    case 'server':
    case 'unknown':
      return undefined;
    case 'elsewhere':
      return {
        kind: 'owned',
        refusal: held(owner, threadId),
        until: 'it is sent when that process has left',
      };
    case 'process': {
      const name = ownerWords(owner);
      if (takesNothing(owner.by)) {
        return { kind: 'owned', refusal: held(owner, threadId), until: `it is sent when ${name} has ended` };
      }
      if (recordedTurn(context, threadId).phase !== 'open') return undefined;
      return {
        kind: 'owned',
        refusal: busy(owner, threadId),
        until: `it is sent when the turn in ${name} has ended`,
      };
    }
  }
}

/** They have no queue, or abort what is in it when they end. */
export function takesNothing(by: OwnerKind): boolean {
  return by === 'exec' || by === 'old';
}
