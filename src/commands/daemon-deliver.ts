import { deliverLeft } from '../runtime/control/deliver.ts';
import { systemScheduler } from '../runtime/daemon/clock.ts';
import type { Resident } from '../runtime/daemon/feeds/resident.ts';
import type { ServiceLog } from '../runtime/daemon/log.ts';
import { createPeriodic } from '../runtime/daemon/periodic.ts';
import { CONTROL } from '../runtime/limits.ts';
import { hasOpenTurn } from '../runtime/session/state.ts';
import { controlContext } from './acting.ts';
import type { World } from './world.ts';

/** Delivers what waits for sessions, at each change of the registry and now and then. Returns what ends it. */
export function startDelivering(world: World, { source, counters }: Resident, log: ServiceLog): () => void {
  const context = controlContext(world);
  const counted = counters.wrap(log);
  const watcher = createPeriodic({
    name: 'messages',
    everyMs: CONTROL.deliverMs,
    scheduler: systemScheduler,
    log: counted,
    reset() {},
    async scan() {
      await source.ready;
      const isBusy: Parameters<typeof deliverLeft>[0]['isBusy'] = (session) => {
        const own = source.find(session)?.own;
        return own?.life === 'alive' && hasOpenTurn(own.state);
      };
      return { ...(await deliverLeft({ context, isBusy, log: counted })) };
    },
  });
  watcher.start();
  const unfollow = source.onChange(() => void watcher.scan());
  return () => {
    unfollow();
    watcher.stop();
  };
}
