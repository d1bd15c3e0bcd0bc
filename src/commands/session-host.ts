import { isAbsolute } from 'node:path';
import { z } from 'zod';
import { runHost } from '../runtime/control/host-server.ts';
import { HOST_COMMAND } from '../runtime/control/names.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { CONTROL } from '../runtime/limits.ts';
import { controlContext, controlOf } from './acting.ts';
import { type Answer, defineCommand } from './command.ts';

const SPEC_BYTES = 64 * 1024;

const spec = z.object({
  session: z.object({ runtimeId: z.string(), instanceId: z.string(), sessionId: z.string().min(1) }),
  start: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('resume') }),
    z.object({ kind: z.literal('new') }),
    z.object({ kind: z.literal('fork'), of: z.string().min(1) }),
  ]),
  workDir: z.string().refine(isAbsolute, { message: 'must be absolute' }),
  approvalMs: z.number().int().positive(),
  keepMs: z.number().int().min(0).max(CONTROL.keepMaxMs),
  native: z.record(z.string(), z.string()),
});

/** Runs one session's process for the other commands; started by them, never by a person. */
export const sessionHost = defineCommand({
  name: HOST_COMMAND,
  summary: 'run one session’s process for the other commands',
  details: 'Started by session-send and session-create; ends by itself. Its orders come on stdin.',
  hidden: true,
  args: {},
  examples: [],
  async run(_args, world): Promise<Answer> {
    const order = readSpec(await world.stdin.read(SPEC_BYTES));
    const context = controlContext(world);
    const control = await controlOf(world, order.session.runtimeId);
    const { host } = control;
    if (!host) {
      throw new ConnectorError('unsupported', `${order.session.runtimeId}: sessions can’t be hosted`);
    }
    const hellos = () => runHost(context, order, (sink) => host(context, order, sink), world.signal);
    return { kind: 'stream', once: true, json: hellos, screen: () => asText(hellos()) };
  },
});

function readSpec(bytes: Uint8Array): z.infer<typeof spec> {
  const parsed = spec.safeParse(parse(new TextDecoder().decode(bytes)));
  if (parsed.success) return parsed.data;
  throw new ConnectorError(
    'usage',
    'no order for a session on stdin',
    'Use: shadowob-connector session-send',
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Somebody typed the command: the schema says no.
    return undefined;
  }
}

async function* asText(hellos: AsyncIterable<unknown>): AsyncIterable<string> {
  for await (const hello of hellos) yield JSON.stringify(hello);
}
