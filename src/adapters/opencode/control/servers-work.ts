import type { ControlContext } from '../../adapter.ts';
import { directoriesToAsk, homeOf, readStoreOf } from '../scan.ts';
import { createServerApi } from '../server-api.ts';
import { pollServer } from '../server-view.ts';
import type { OwnServer } from './own-servers.ts';

/** Whether a server of ours works on any session now, as far as the store names folders in which a turn may run. */
export async function isServerBusy(
  context: ControlContext,
  { url, credentials }: Pick<OwnServer, 'url' | 'credentials'>,
): Promise<boolean> {
  const api = createServerApi({ url, named: false, credentials }, context.now);
  const store = readStoreOf(context, homeOf(context));
  const view = await pollServer(api, { version: '' }, directoriesToAsk(store, context.now()));
  return view.statuses.size > 0;
}
