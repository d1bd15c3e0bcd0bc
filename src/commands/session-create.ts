import { resolve } from 'node:path';
import { labelOf } from '../adapters/catalog.ts';
import type { ApprovalPolicy, CreateResult } from '../runtime/control.ts';
import { capable, controlContext, controlOf, refusalError, sweepLines } from './acting.ts';
import { type Answer, defineCommand } from './command.ts';
import { refusalData } from './output/control-data.ts';
import { APPROVAL_ARGS, readPolicy } from './send-order.ts';

export const sessionCreate = defineCommand({
  name: 'session-create',
  summary: 'begin a session without a message',
  details:
    'Starts a session that waits for its first message, where the runtime can, and prints its id. To begin one with a message: session-send --new.',
  args: {
    runtime: { type: 'string', required: true, description: 'The runtime, by id', valueHint: 'id' },
    dir: { type: 'string', description: 'Where it begins (default: here)', valueHint: 'path' },
    model: { type: 'string', description: 'The model, as the runtime calls it', valueHint: 'name' },
    title: { type: 'string', description: 'A name for it, where the runtime has them', valueHint: 'text' },
    ...APPROVAL_ARGS,
    'opencode-url': { type: 'string', description: 'An OpenCode server to ask', valueHint: 'url' },
  },
  examples: [
    {
      command: 'session-create --runtime claude-code --dir ~/app',
      says: 'its id; send to it with session-send',
    },
  ],
  async run(args, world): Promise<Answer> {
    const policy = readPolicy(args);
    const control = await controlOf(world, args.runtime);
    const context = controlContext(world, args);
    const create = capable(control, 'create', args.runtime).bind(control);
    const warnings = await sweepLines(context);
    const result = await create(context, {
      workDir: resolve(world.cwd, args.dir ?? '.'),
      ...policy,
      ...(args.model === undefined ? {} : { model: args.model }),
      ...(args.title === undefined ? {} : { title: args.title }),
    });
    if (result.kind === 'refused') {
      return {
        kind: 'document',
        data: createDocument(args.runtime, policy.approvals, result),
        text: () => '',
        warnings,
        failure: refusalError(result.refusal),
      };
    }
    const { session, detail } = result;
    return {
      kind: 'document',
      data: createDocument(args.runtime, policy.approvals, result),
      text: () => `${session.sessionId}\n${labelOf(session.runtimeId)}: ${detail}`,
      warnings,
    };
  },
});

/** What came of it, as JSON. */
export function createDocument(
  runtimeId: string,
  approvals: ApprovalPolicy,
  result: CreateResult,
): Record<string, unknown> {
  if (result.kind === 'refused') return { runtimeId, created: false, ...refusalData(result.refusal) };
  return { ...result.session, created: true, detail: result.detail, approvals };
}
