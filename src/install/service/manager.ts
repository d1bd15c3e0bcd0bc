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
