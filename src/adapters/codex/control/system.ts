import { systemHost } from '../../../runtime/process/spawn.ts';
import type { ProcessHost } from '../../../runtime/process/types.ts';
import type { ControlContext } from '../../adapter.ts';

/** This computer's processes, as the context wants them seen. */
export function controlHost(context: ControlContext): ProcessHost {
  return { ...systemHost, platform: context.platform, run: context.run, now: () => context.now() };
}
