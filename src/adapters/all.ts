import type { Adapter } from './adapter.ts';
import { claudeCode } from './claude-code/index.ts';
import { codex } from './codex/index.ts';
import { opencode } from './opencode/index.ts';
import { pi } from './pi/index.ts';

/** The runtimes whose sessions can be seen, in the order of `runtimeIds` in the snapshot (`cli-surface.md` §5). */
export const ADAPTERS: readonly Adapter[] = [opencode, claudeCode, codex, pi];
