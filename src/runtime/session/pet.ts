import type { PublicState } from './project.ts';
import { publicState } from './project.ts';
import { redact } from './redact.ts';
import type { SessionState, ToolCall } from './state.ts';
import { clip, oneLine } from './text.ts';

/** Reactions of the desktop pet (`shadow-server.md` §8). `waving` and `celebrating` are never made here. */
export type PetReaction =
  | 'idle'
  | 'thinking'
  | 'working'
  | 'editing'
  | 'running'
  | 'testing'
  | 'waiting'
  | 'waving'
  | 'success'
  | 'error'
  | 'celebrating';

export type PetActivityKind =
  | 'thinking'
  | 'reading'
  | 'working'
  | 'editing'
  | 'running'
  | 'testing'
  | 'tool_call'
  | 'approval'
  | 'waiting'
  | 'success'
  | 'error';

export interface PetActivity {
  readonly kind: PetActivityKind;
  readonly label?: string;
}

export interface PetSignals {
  readonly petReaction: PetReaction;
  readonly petActivity?: PetActivity;
}

const BY_STATE: Record<PublicState, PetReaction> = {
  idle: 'idle',
  running: 'working',
  streaming: 'thinking',
  tool_call: 'working',
  waiting_for_approval: 'waiting',
  blocked: 'waiting',
  completed: 'success',
  failed: 'error',
  stopped: 'idle',
  unknown: 'idle',
};

const ACTIVITY_BY_STATE: Partial<Record<PublicState, PetActivityKind>> = {
  running: 'working',
  streaming: 'thinking',
  tool_call: 'tool_call',
  waiting_for_approval: 'waiting',
  blocked: 'waiting',
  completed: 'success',
  failed: 'error',
};

/** Pet reaction and activity of a state (`shadow-server.md` §8, without the faults C14, C16, C17, O1). */
export function petSignals(state: SessionState): PetSignals {
  const word = publicState(state);
  if (state.kind === 'working' && state.doing === 'tool' && state.tool) return toolSignals(state.tool);
  const kind = ACTIVITY_BY_STATE[word];
  return { petReaction: BY_STATE[word], ...(kind ? { petActivity: { kind } } : {}) };
}

/** Tools that only look like editing or running because of a part of their name (C14). */
const PLAIN_TOOLS =
  /^(todo.*|update_?plan|task_?(create|update|list|get|stop|output)|exit_?plan_?mode|enter_?plan_?mode|ask_?user.*|request_user_input|wait.*|skill)$/;

function toolSignals(tool: ToolCall): PetSignals {
  const name = tool.name.toLowerCase();
  if (PLAIN_TOOLS.test(name)) return signal('working', 'working', tool.name);
  if (/edit|write|patch/.test(name)) return signal('editing', 'editing', baseName(tool.path));
  if (/web_?fetch|web_?search|fetch/.test(name)) return signal('thinking', 'reading', tool.pattern);
  if (/bash|shell|terminal|exec|command|run/.test(name)) {
    const kind = looksLikeTestRun(tool.command ?? '') ? 'testing' : 'running';
    return signal(kind, kind, firstWords(tool.command));
  }
  if (/read/.test(name)) return signal('thinking', 'reading', baseName(tool.path));
  if (/grep|find|search|glob|list|^ls$/.test(name))
    return signal('thinking', 'reading', tool.pattern ?? baseName(tool.path));
  if (/reason|think/.test(name)) return signal('thinking', 'thinking', undefined);
  return signal('working', 'working', tool.name);
}

function signal(petReaction: PetReaction, kind: PetActivityKind, label: string | undefined): PetSignals {
  const clean = label === undefined ? '' : clip(redact(oneLine(label)), LABEL_LIMIT, '...');
  return { petReaction, petActivity: { kind, ...(clean ? { label: clean } : {}) } };
}

const LABEL_LIMIT = 36;
const COMMAND_LABEL_LIMIT = 32;

function baseName(path: string | undefined): string | undefined {
  return path?.split(/[\\/]/).filter(Boolean).at(-1);
}

/** The first four words of a command, masked before they are cut so that half a secret can't remain. */
function firstWords(command: string | undefined): string | undefined {
  if (!command) return undefined;
  const masked = redact(oneLine(command.slice(0, 2_048)));
  const words = masked.split(' ');
  const few = words.slice(0, 4).join(' ');
  return clip(words.length > 4 ? `${few}...` : few, COMMAND_LABEL_LIMIT, '...');
}

const TEST_PROGRAMS =
  /^(vitest|jest|pytest|py\.test|mocha|ava|tap|phpunit|rspec|ctest|tox|nox|nextest|karma|cypress|playwright|busted|bats|prove)$/;
const RUNNERS =
  /^(npm|pnpm|yarn|bun|cargo|go|deno|make|gradle|gradlew|mvn|mvnw|dotnet|mix|swift|rake|composer|zig|flutter|dart|just|task|nx|turbo|sbt|lein|stack|cabal|bazel|meson|ninja)$/;
const PREFIXES =
  /^(sudo|time|nice|env|npx|bunx|pnpx|uvx|exec|nohup|command|timeout|\d+[smh]?|poetry|uv|pipenv|bundle|dotenv|cross-env|[A-Za-z_][A-Za-z0-9_]*=.*)$/;

/** A test run is a test program, or a runner told to test, at the head of any command of a chain (C16: not `ls test`). */
export function looksLikeTestRun(command: string): boolean {
  return command
    .slice(0, 2_048)
    .split(/&&|\|\||[;|\n]/)
    .some((part) => headIsTest(part.trim().split(/\s+/)));
}

function headIsTest(words: readonly string[]): boolean {
  const start = words.findIndex((word, i) => !PREFIXES.test(word) && !(i > 0 && word.startsWith('-')));
  const program = baseName(words[start])?.toLowerCase();
  if (!program) return false;
  if (program === 'run' || program === 'exec') return headIsTest(words.slice(start + 1));
  if (TEST_PROGRAMS.test(program)) return true;
  if (/^python[0-9.]*$/.test(program))
    return words[start + 1] === '-m' && /^(pytest|unittest|nose2?)$/.test(words[start + 2] ?? '');
  if (program === 'node') return words.slice(start + 1).includes('--test');
  if (!RUNNERS.test(program)) return false;
  const rest = words.slice(start + 1).filter((word) => !word.startsWith('-'));
  const verb = rest[0] === 'run' || rest[0] === 'exec' ? rest[1] : rest[0];
  return (
    verb !== undefined &&
    (/^(tests?|t|check|nextest)$/.test(verb) || /^test[:_-]/.test(verb) || TEST_PROGRAMS.test(verb))
  );
}
