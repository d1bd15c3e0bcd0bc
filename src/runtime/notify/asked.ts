import { needsUser } from '../session/project.ts';
import type { Fused } from '../session/session.ts';

/**
 * Whether somebody is there who waits for the user: proven, or reported by the program itself while nothing says that
 * it has gone. A wait that only a file speaks of is none.
 */
export function isAsked(shown: Fused): boolean {
  if (shown.state.kind !== 'waiting') return false;
  return needsUser(shown) || (shown.evidence?.confidence === 'reported' && shown.life !== 'dead');
}
