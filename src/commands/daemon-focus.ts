import { CONNECTOR_VERSION, readConnector } from '../runtime/daemon/connector/schema.ts';
import type { Resident } from '../runtime/daemon/feeds/resident.ts';
import { RequestError } from '../runtime/daemon/protocol.ts';
import type { OpHandler } from '../runtime/daemon/service.ts';
import { type LauncherOptions, openWindow } from '../runtime/focus/launcher.ts';

/** `focus` on the socket (S-208, R-43): opens the window that shows a session, or says why there is none. */
export function focusHandler(
  engineOf: () => Pick<Resident['engine'], 'entries' | 'focusFolder'> | undefined,
  launcher: LauncherOptions,
): OpHandler {
  return async (payload) => {
    const wanted = readConnector.focus(payload).session.trim().toLowerCase();
    const engine = engineOf();
    const ids = engine?.entries().map(({ id }) => id) ?? [];
    const found = ids.includes(wanted) ? [wanted] : ids.filter((id) => id.toLowerCase().startsWith(wanted));
    const [id, second] = found;
    if (!engine || id === undefined) throw new RequestError(`no window shows session ${wanted}`);
    if (second !== undefined) throw new RequestError(`"${wanted}" could be any of ${found.length} sessions`);
    const folder = engine.focusFolder(id);
    const launched = await openWindow(folder, launcher);
    if (launched.kind === 'refused') throw new RequestError(`session ${id}: ${launched.reason}`);
    return { version: CONNECTOR_VERSION, session: id, folder };
  };
}
