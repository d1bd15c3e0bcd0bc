import { labelOf } from '../adapters/catalog.ts';
import type { Session } from '../runtime/session/session.ts';
import type { SessionsView } from './collect.ts';
import { sessionTable } from './output/session-table.ts';
import type { Style } from './output/style.ts';
import { shortIds } from './resolve.ts';
import type { World } from './world.ts';

/** The table of some of a monitor's sessions; ids are as short as all of them together allow. */
export function tableOfSessions(
  style: Style,
  shown: readonly Session[],
  monitor: Pick<SessionsView, 'registry'>,
  { redact, world }: { readonly redact: boolean; readonly world: World },
): string {
  return sessionTable(style, shown, {
    now: world.now(),
    home: world.home,
    redact,
    labelOf,
    idOf: shortIds(monitor.registry.sessions()),
  });
}
