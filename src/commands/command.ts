import type { ArgsDef, ParsedArgs } from 'citty';
import type { ConnectorError, ExitCode } from '../runtime/errors.ts';
import type { Style } from './output/style.ts';
import type { World } from './world.ts';

/** What a command gives back. It never prints: `output/` renders it as text, one JSON document, or NDJSON. */
export type Answer =
  | {
      readonly kind: 'document';
      /** The whole answer as JSON data. */
      readonly data: unknown;
      /** The same for a person. */
      text(style: Style): string;
      readonly exitCode?: ExitCode;
      /** Lines for stderr: what is missing from the answer, and why. */
      readonly warnings?: readonly string[];
      /** Why it was not done. People then get this alone, programs the document; its code is the exit code. */
      readonly failure?: ConnectorError;
      /** Its user ended it before it was through: it leaves as a program that SIGINT ended. */
      readonly interrupted?: true;
    }
  | {
      /** Text that is the answer in both forms: a script, a version. */
      readonly kind: 'verbatim';
      readonly text: string;
    }
  | {
      /** What happens, as it happens, to its end. `--json` prints one object a line. */
      readonly kind: 'events';
      lines(signal: AbortSignal): AsyncIterable<EventLine>;
      /** Asked after the last line. */
      outcome(): { readonly exitCode: ExitCode; readonly failure?: ConnectorError };
    }
  | {
      /** An answer without an end. `json` yields one object a line, `screen` yields whole pictures. */
      readonly kind: 'stream';
      json(signal: AbortSignal): AsyncIterable<unknown>;
      screen(signal: AbortSignal, style: Style): AsyncIterable<string>;
      /** One picture only: print it and leave. */
      readonly once: boolean;
    };

/** One event of an action, for programs and for people. */
export interface EventLine {
  readonly data: unknown;
  /** What goes to stdout and to stderr; nothing for an event that says nothing to a person. */
  text(style: Style): { readonly out?: string; readonly err?: string };
}

export interface Example {
  readonly command: string;
  readonly says: string;
}

/** A command as a declaration and a short body. */
export interface Command<Args extends ArgsDef = ArgsDef> {
  readonly name: string;
  /** One line, for the list of commands. */
  readonly summary: string;
  /** A paragraph for the command's own help. */
  readonly details: string;
  readonly args: Args;
  readonly examples: readonly Example[];
  readonly hidden?: boolean;
  /** Looks, answers and ends: its process compiles sparingly (`runtime/process/compile-policy.ts`). */
  readonly brief?: true;
  /** Talks with its user: no line of progress runs through that. */
  readonly asks?: true;
  run(args: ParsedArgs<Args>, world: World): Promise<Answer>;
}

/** Types a declaration by its own arguments. */
export function defineCommand<const Args extends ArgsDef>(command: Command<Args>): Command<Args> {
  return command;
}

/** Options that every command takes. */
export const COMMON_ARGS = {
  json: { type: 'boolean', description: 'Print one JSON document (errors too)' },
  verbose: { type: 'boolean', description: 'Print diagnostics to stderr' },
} as const satisfies ArgsDef;

/** Who is asked. */
export const DAEMON_ARG = {
  daemon: {
    type: 'boolean',
    default: true,
    description: 'Ask the daemon when one runs',
    negativeDescription: 'Look yourself, also when a daemon runs',
  },
} as const satisfies ArgsDef;

/** The filters of everything that lists sessions. */
export const SESSION_FILTER_ARGS = {
  runtime: {
    type: 'string',
    description: 'Only these runtimes, by id (comma-separated)',
    valueHint: 'id',
  },
  state: {
    type: 'string',
    description: 'Only these states (comma-separated), or "active" or "waiting"',
    valueHint: 'state',
  },
  since: {
    type: 'string',
    description: 'Only sessions active since then: 30m, 2h, 7d, or a date',
    valueHint: 'when',
  },
  dir: { type: 'string', description: 'Only sessions at or below this folder', valueHint: 'path' },
  limit: { type: 'string', description: 'At most this many sessions', valueHint: 'n' },
  all: { type: 'boolean', description: 'Everything: no limit, archived sessions and sub-agents too' },
  redact: { type: 'boolean', description: 'Hide titles and paths' },
  'opencode-url': {
    type: 'string',
    description: 'An OpenCode server to ask (else its environment, port 4096, and running processes)',
    valueHint: 'url',
  },
  ...DAEMON_ARG,
} as const satisfies ArgsDef;
