import { launchdManager } from './launchd.ts';
import { hasUserManager, systemdManager } from './systemd.ts';
import type { ServiceManager, ServiceSystem } from './types.ts';
import { windowsManager } from './windows.ts';

/**
 * The service manager of this user; undefined where there is none that we know, or it is switched off: the daemon is
 * then a detached process without a start at login (S-338).
 */
export function serviceManager(system: ServiceSystem, home: string): ServiceManager | undefined {
  if (system.platform === 'darwin') return launchdManager(system);
  if (system.platform === 'win32') return windowsManager(system, home);
  return hasUserManager(system) ? systemdManager(system) : undefined;
}

/** Whether systemd's units are installed where its manager is out of reach, as in a cron job or after `su`. */
export function unitsWithoutManager(system: ServiceSystem): boolean {
  return system.platform === 'linux' && !hasUserManager(system) && systemdManager(system).installed();
}
