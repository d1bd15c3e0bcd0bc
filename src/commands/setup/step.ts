import type { ExitName } from '../../runtime/errors.ts';

/** The steps of `setup`: each looks for itself, and is done on a yes. */

/** What a person can say to a question; `stop` is Ctrl-C, or the end of the input. */
export type Reply = 'yes' | 'no' | 'stop';

/** One yes/no question. */
export interface Question {
  /** Ends with a question mark. */
  readonly text: string;
  /** Why one would want it, or what it costs: one line. */
  readonly reason: string;
  /** What an empty line means, and `--yes`. */
  readonly fallback: boolean;
  /** The change to the byte, shown on request. */
  readonly diff?: string;
}

/** The conversation; a terminal in life, a script in tests. */
export interface Talk {
  say(text: string): void;
  ask(question: Question): Promise<Reply>;
  close(): void;
}

/** What became of an offer that was taken. */
export interface Deed {
  readonly result: 'done' | 'failed';
  /** Sentences for a person: what was done, what its owner has to know, or why it was not done. */
  readonly says: readonly string[];
  /** The exit code of a failure. */
  readonly problem?: ExitName;
}

/** What a step finds. */
export type Finding =
  /** Nothing of it concerns this computer: it is not even mentioned. */
  | { readonly kind: 'none' }
  /** Said and not asked. */
  | { readonly kind: 'already'; readonly says: readonly string[] }
  /** It can't be done before its owner has mended something. */
  | { readonly kind: 'refused'; readonly says: readonly string[]; readonly problem: ExitName }
  | {
      readonly kind: 'offer';
      readonly question: Question;
      /** Sentences for who declines: what stays to be known. */
      readonly declined?: readonly string[];
      accept(): Promise<Deed>;
    };

/** What became of each step so far, by its id. */
export type Sofar = ReadonlyMap<string, Result>;

export interface Step {
  readonly id: string;
  /** A few words: "hooks of Claude Code". */
  readonly title: string;
  /** The words behind the program's name that do the same alone, for later. */
  readonly command: string;
  /** The words behind the program's name that take it back. */
  readonly undo?: string;
  look(sofar: Sofar): Promise<Finding>;
}

export type Result =
  | 'done'
  | 'already'
  | 'declined'
  /** `--dry-run`: what would be asked, with its default. */
  | 'offered'
  | 'refused'
  | 'failed';

/** What became of one step. */
export interface StepDone {
  readonly step: Step;
  readonly result: Result;
  readonly says: readonly string[];
  readonly question?: Question;
  readonly problem?: ExitName;
}

/** Whether a step holds now, by this run or an earlier one. */
export const holds = (result: Result | undefined): boolean => result === 'done' || result === 'already';

/** Whether a step holds, or would be offered: what later steps of a dry run are looked at by. */
export const mayHold = (result: Result | undefined): boolean => holds(result) || result === 'offered';
