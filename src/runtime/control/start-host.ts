import type { Refusal } from '../control.ts';
import { createLineDecoder } from '../daemon/line-codec.ts';
import { CONTROL } from '../limits.ts';
import { scrubbedEnv } from '../process/scrubbed-env.ts';
import { startDetached } from '../process/spawn.ts';
import { ensureHome } from '../store/home.ts';
import { connectHost, type HostClient } from './client.ts';
import type { ActingContext } from './context.ts';
import type { HostSpec } from './driver.ts';
import type { HostHello } from './host-server.ts';
import { HOST_COMMAND } from './names.ts';
import { placesOf } from './places.ts';

export type HostReached =
  | { readonly kind: 'reached'; readonly client: HostClient }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** Pause between two tries while another process starts or ends the session's host. */
const RETRY_MS = 25;

/**
 * Connects to the session's host, and starts one where none runs. Whoever loses the race for the session's lock talks
 * to the winner's host.
 */
export async function reachHost(context: ActingContext, spec: HostSpec): Promise<HostReached> {
  const { socket } = placesOf(context.connectorHome, spec.session);
  const deadline = performance.now() + CONTROL.hostStartMs;
  while (performance.now() < deadline) {
    const client = await connectHost(socket, context.platform);
    if (client) return { kind: 'reached', client };
    const hello = await startHost(context, spec);
    if (hello.type === 'refused') {
      const { type: _, ...refusal } = hello;
      return { kind: 'refused', refusal };
    }
    // `busy`: somebody else's host holds the lock, and does not listen yet, or no longer.
    if (hello.type === 'busy') await Bun.sleep(RETRY_MS);
  }
  return {
    kind: 'refused',
    refusal: {
      reason: `no process for this session could be reached within ${CONTROL.hostStartMs / 1_000} s`,
      kind: 'timedOut',
      next: 'Try again; if it stays so: shadowob-connector session-abort --kill',
    },
  };
}

async function startHost(context: ActingContext, spec: HostSpec): Promise<HostHello> {
  ensureHome(context.connectorHome, context.platform);
  const child = startDetached({
    argv: [...context.self, HOST_COMMAND, '--json'],
    env: scrubbedEnv(context.env),
    // Not the folder of the caller: a host that lives for hours must not hold on to it.
    cwd: context.connectorHome,
    stdin: JSON.stringify(spec),
  });
  if (child.kind !== 'started') {
    const reason = `the connector could not start itself again: ${child.message}`;
    return { type: 'refused', reason, kind: 'refused', next: 'Install it again, then try again.' };
  }
  const hello = await firstLine(child.stdout);
  child.letGo();
  return hello;
}

/** The one line of a host, or what its silence means. The rest of the pipe is not read: nothing follows. */
async function firstLine(stdout: ReadableStream<Uint8Array>): Promise<HostHello> {
  const decoder = createLineDecoder();
  const reader = stdout.getReader();
  const timer = setTimeout(() => reader.cancel(), CONTROL.hostStartMs);
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      const [frame] = decoder.push(next.value);
      if (frame) return frame.kind === 'line' ? readHello(frame.text) : silent();
    }
    return silent();
  } finally {
    clearTimeout(timer);
    reader.releaseLock();
  }
}

function silent(): HostHello {
  return {
    type: 'refused',
    reason: 'the process for this session ended before it was ready',
    kind: 'refused',
    next: 'Try again with --verbose.',
  };
}

function readHello(line: string): HostHello {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value !== 'object' || value === null) return silent();
    if ('type' in value && value.type === 'ready') return { type: 'ready' };
    if ('type' in value && value.type === 'busy') return { type: 'busy' };
    if ('reason' in value && typeof value.reason === 'string') {
      const next = 'next' in value && typeof value.next === 'string' ? value.next : '';
      return { type: 'refused', reason: value.reason, kind: 'refused', next };
    }
    // The command's own error document.
    if ('error' in value && typeof value.error === 'object' && value.error !== null) {
      return readHello(JSON.stringify({ reason: Reflect.get(value.error, 'message') }));
    }
    return silent();
  } catch {
    // Not JSON: another program answers under our name.
    return silent();
  }
}
