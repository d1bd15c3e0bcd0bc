import type { ToolCall, WaitSubject } from '../../runtime/session/state.ts';
import { objectOf, textOf } from './values.ts';

/** A tool call of the model: its id, and what a label may show of it. */
export interface ToolUse {
  readonly id: string;
  readonly tool: ToolCall;
}

/**
 * What a wait on this tool is about: the tool's own name beats what the program calls the wait. Both
 * recorded versions say "permission prompt" for a question, too.
 */
export function subjectOf(toolName: string | undefined): WaitSubject | undefined {
  if (toolName === 'AskUserQuestion') return 'question';
  return toolName === 'ExitPlanMode' ? 'plan' : undefined;
}

/** A `tool_use` block; `undefined` if it is no such block. Long inputs are cut: only a label is made of them. */
export function toolUseOf(block: Readonly<Record<string, unknown>>): ToolUse | undefined {
  const id = textOf(block['id']);
  const name = textOf(block['name']);
  if (block['type'] !== 'tool_use' || !id || !name) return undefined;
  const input = objectOf(block['input']) ?? {};
  const command = cut(textOf(input['command']));
  const path = cut(textOf(input['file_path']) ?? textOf(input['notebook_path']) ?? textOf(input['path']));
  const pattern = cut(textOf(input['pattern']) ?? textOf(input['query']) ?? textOf(input['url']));
  return {
    id,
    tool: {
      name,
      ...(command ? { command } : {}),
      ...(path ? { path } : {}),
      ...(pattern ? { pattern } : {}),
    },
  };
}

const LABEL_SOURCE_LIMIT = 2_048;

function cut(text: string | undefined): string | undefined {
  return text?.slice(0, LABEL_SOURCE_LIMIT);
}
