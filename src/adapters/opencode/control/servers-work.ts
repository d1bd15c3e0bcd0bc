import { listRecords } from '../../../runtime/control/record.ts';
import { checkProcess } from '../../../runtime/process/identity.ts';
import type { ProcessHost } from '../../../runtime/process/types.ts';
import { type SessionRef, sessionKey } from '../../../runtime/session/session.ts';
import type { ControlContext } from '../../adapter.ts';
import { directoriesToAsk, homeOf, readStoreOf } from '../scan.ts';
import { createServerApi } from '../server-api.ts';
import { pollServer } from '../server-view.ts';
import { RUNTIME_ID } from '../sightings.ts';
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

/** Whether the host of a session may end a server of ours: one for its turn always, the managed one if nobody uses it. */
export async function mayEnd(
  context: ControlContext,
  host: ProcessHost,
  session: SessionRef,
  record: OwnServer,
  how: 'rest' | 'kill',
): Promise<boolean> {
  if (record.life === 'turn') return true;
  if (await othersLive(context, host, session)) return false;
  return how === 'kill' || !(await isServerBusy(context, record));
}

/** Whether another host of ours lives, which may use the managed server, too. */
async function othersLive(context: ControlContext, host: ProcessHost, session: SessionRef): Promise<boolean> {
  const others = listRecords(context.connectorHome).filter(
    (record) => record.session.runtimeId === RUNTIME_ID && sessionKey(record.session) !== sessionKey(session),
  );
  const states = await Promise.all(others.map((record) => checkProcess(record.host, host)));
  return states.some((state) => state !== 'gone');
}
