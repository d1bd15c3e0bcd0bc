import { systemFiles } from '../../../runtime/files/file-system.ts';
import { createFileReader } from '../../../runtime/files/head-tail.ts';
import type { AdapterContext } from '../../adapter.ts';
import { codexHome } from '../homes.ts';
import { createRolloutStore } from '../rollout-store.ts';
import { orderSegments } from '../segments.ts';
import { joinSegments } from '../thread.ts';
import type { Turn } from '../turn.ts';
import { walkRollouts } from '../walk.ts';

/** The newest turn of a thread as its records have it: the only word of one whose owner has no server. */
export function recordedTurn(context: AdapterContext, threadId: string): Turn {
  const files = context.files ?? systemFiles;
  const { rollouts } = walkRollouts(codexHome(context), files, context.platform);
  const own = orderSegments(rollouts.filter((file) => file.threadId === threadId.toLowerCase()));
  const store = createRolloutStore(createFileReader(files), files, undefined, new Map());
  const request = { want: { prompt: false, context: false }, details: 'always', now: context.now() } as const;
  return joinSegments(own.flatMap((file) => store.read(file, request).rollout ?? [])).turn;
}
