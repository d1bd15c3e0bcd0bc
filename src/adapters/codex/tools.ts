import type { ToolCall } from '../../runtime/session/state.ts';
import { asFields, type Fields, listOf, objectOf, parseFields, textOf } from './fields.ts';

/** Arguments longer than this are not looked into: a label needs the first words only. */
const ARGUMENTS_LIMIT = 64 * 1024;
/** What is kept of a command, a path or a pattern. */
const DETAIL_LIMIT = 2_048;

/** The tool by which Codex asks its user a question (X11); its call without output is the wait itself. */
export const ASKING_TOOL = 'request_user_input';

/**
 * Reduces a call record (`function_call`, `custom_tool_call`, `local_shell_call`, `web_search_call`, …) to what a
 * label may show. `undefined` for records that are no calls. Values are raw.
 */
export function toolCallOf(type: string, payload: Fields): ToolCall | undefined {
  switch (type) {
    case 'function_call':
      return named(textOf(payload, 'name'), detailsOf(argumentsOf(payload)));
    case 'custom_tool_call':
      return named(textOf(payload, 'name'), freeformDetails(textOf(payload, 'input') ?? ''));
    case 'local_shell_call':
      return named('local_shell', detailsOf(objectOf(payload, 'action')));
    case 'web_search_call':
      return named('web_search', detailsOf(objectOf(payload, 'action')));
    case 'image_generation_call':
      return { name: 'image_generation' };
    case 'tool_search_call':
      return named('tool_search', detailsOf(objectOf(payload, 'arguments')));
    default:
      return undefined;
  }
}

/** The same for the tool fields of a hook payload: `tool_input` of a shell and of a patch is `{command}`. */
export function hookTool(name: string, input: Fields | undefined): ToolCall {
  const command = textOf(input, 'command');
  if (name === 'apply_patch') return named(name, patchDetails(command ?? '')) ?? { name };
  return named(name, detailsOf(input)) ?? { name };
}

type Details = Omit<ToolCall, 'name'>;

function named(name: string | undefined, details: Details): ToolCall | undefined {
  return name === undefined ? undefined : { name, ...details };
}

function argumentsOf(payload: Fields): Fields | undefined {
  const text = textOf(payload, 'arguments');
  return text === undefined || text.length > ARGUMENTS_LIMIT ? undefined : parseFields(text);
}

function detailsOf(fields: Fields | undefined): Details {
  const command = commandOf(fields);
  const path = textOf(fields, 'path') ?? textOf(fields, 'file_path') ?? textOf(fields, 'dir_path');
  const pattern = textOf(fields, 'pattern') ?? textOf(fields, 'query');
  return {
    ...(command ? { command: cut(command) } : {}),
    ...(path ? { path: cut(path) } : {}),
    ...(pattern ? { pattern: cut(pattern) } : {}),
  };
}

/** `cmd` of exec_command, `command` of shell tools: a line, or words of which `bash -lc` is only the wrapping. */
function commandOf(fields: Fields | undefined): string | undefined {
  const line = textOf(fields, 'cmd') ?? textOf(fields, 'command');
  if (line !== undefined) return line;
  const words = listOf(fields, 'command').filter((word): word is string => typeof word === 'string');
  const wrapped = words.length === 3 && /^-l?c$/.test(words[1] ?? '') ? words[2] : undefined;
  return wrapped ?? (words.length > 0 ? words.join(' ') : undefined);
}

/**
 * Free text of a custom tool: a patch, or the JavaScript of code-mode models in which the shell command is an
 * argument of `tools.exec_command` (scenario `exec-tool-codemode`).
 */
function freeformDetails(input: string): Details {
  const text = input.slice(0, ARGUMENTS_LIMIT);
  const patch = patchDetails(text);
  if (patch.path) return patch;
  const command = scriptCommand(text);
  return command ? { command: cut(command) } : {};
}

function patchDetails(text: string): Details {
  const path = /^\*\*\* (?:Update|Add|Delete) File: (.+)$/m.exec(text)?.[1]?.trim();
  return path ? { path: cut(path) } : {};
}

function scriptCommand(script: string): string | undefined {
  const literal = /["']?\bcmd["']?\s*:\s*("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)/.exec(
    script,
  );
  const quoted = literal?.[1];
  if (quoted === undefined) return undefined;
  if (!quoted.startsWith('"')) return quoted.slice(1, -1);
  const parsed = parseFields(`{"cmd":${quoted}}`);
  return textOf(parsed, 'cmd') ?? quoted.slice(1, -1);
}

function cut(text: string): string {
  return text.slice(0, DETAIL_LIMIT);
}

/** Text of a message's content parts. */
export function contentText(parts: readonly unknown[]): string {
  return parts.flatMap((part) => textOf(asFields(part), 'text') ?? []).join('\n');
}
