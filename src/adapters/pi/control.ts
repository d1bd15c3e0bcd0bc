import type { Refusal, RuntimeControl } from '../../runtime/control.ts';
import type { ControlContext } from '../adapter.ts';

/**
 * How pi is acted on without our extension: not at all. pi has no port and no socket, and nothing of its own stops a
 * second writer of a session's file (1.6.0), so that a process of ours beside an open terminal would fork its history.
 * With the extension inside, the session's own process takes the order (`runtime/control/inside.ts`).
 */
export const piControl: RuntimeControl<ControlContext> = {
  async *send(context) {
    yield { type: 'refused', at: context.now(), ...NOT_INSIDE };
  },
  abort: async () => ({ kind: 'refused', refusal: NOT_INSIDE }),
  pending: async () => [],
};

const NOT_INSIDE: Refusal = {
  reason:
    'pi can be reached only through our extension in it, and no pi that has this session open reports it',
  kind: 'unsupported',
  next: 'shadowob-connector install-hooks --runtime pi, start the daemon, then open the session: pi --session <id>',
};
