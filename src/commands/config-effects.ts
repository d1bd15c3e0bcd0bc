import type { Config } from '../runtime/config/schema.ts';
import { isAlive } from '../runtime/process/identity.ts';
import { likelyHolder, managerOf, specOf } from './daemon-reach.ts';
import type { World } from './world.ts';

interface Effects {
  readonly done: readonly string[];
  readonly notes: readonly string[];
}

/**
 * What follows from a changed setting: with notifications on, the service also starts at login and after a failure
 * with them off, the first client starts it again. A daemon that runs follows the file by itself.
 */
export async function afterChange(
  world: World,
  place: { readonly home: string; readonly socketPath: string },
  before: Config,
  after: Config,
): Promise<Effects> {
  const isOn = after.notifications.enabled;
  if (before.notifications.enabled === isOn) return { done: [], notes: [] };
  const manager = managerOf(world, place.home);
  if (!manager?.installed())
    return { done: [], notes: isOn ? withoutService(place.socketPath, manager !== undefined) : [] };
  const report = await manager.install(specOf(world, place.socketPath, place.home));
  const mode = isOn
    ? 'The service now starts at login and after a failure.'
    : 'The service is again started by the first client.';
  return { done: [...report.done, ...(report.ok ? [mode] : [])], notes: report.notes };
}

function withoutService(socketPath: string, hasManager: boolean): readonly string[] {
  const holder = likelyHolder(socketPath);
  if (holder && isAlive(holder.pid)) {
    return hasManager ? ['To have the daemon at every login: shadowob-connector daemon install'] : [];
  }
  const command = hasManager ? 'daemon install' : 'daemon start';
  return [`Only a running daemon tells you anything: shadowob-connector ${command}`];
}
