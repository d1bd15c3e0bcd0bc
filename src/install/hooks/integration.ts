/**
 * What a runtime's hooks integration is: how our entries (or a file of ours) get into what the runtime reads, how
 * they get out, and what can be said of them. One plain object a runtime, listed in `index.ts`; the commands know
 * nothing else of a runtime.
 *
 * Planning only looks. Nothing is written before {@link PlannedChange.commit} is called, so `--dry-run` is planning
 * alone.
 */
import type { CommandRunner } from '../../runtime/process/types.ts';
import type { Editor, Outcome } from '../edit/editor.ts';

/** What integrations may touch of the outside world. */
export interface HooksContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's home folder. */
  readonly home: string;
  /** The folder that relative paths of options are taken from. */
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  readonly connectorHome: string;
  /** The absolute path of our executable, as it is to stand in commands. */
  readonly program: string;
  /** Edits settings files, with backups and undo in the connector home. */
  readonly editor: Editor;
  /** Runs helper programs (version probes). */
  readonly run: CommandRunner;
  /** Epoch milliseconds. */
  now(): number;
  readonly signal?: AbortSignal;
  readonly log: { debug(message: string): void; warn(message: string): void };
  /** All programs of a runtime that were found on this computer, the one that a shell would start first. */
  programs(runtimeId: string): Promise<readonly RuntimeProgram[]>;
  /** Options of the commands by name, without dashes; see {@link HooksOption}. */
  readonly options: Readonly<Record<string, string | undefined>>;
}

export interface RuntimeProgram {
  readonly path: string;
  /** Absent: it does not say. */
  readonly version?: string;
  /** The environment in which it finds what it needs, without marks of a session around us. */
  readonly env: Readonly<Record<string, string>>;
}

/** An option that names another place than the usual one. It becomes an option of all three commands. */
export interface HooksOption {
  /** Without dashes: `settings` is `--settings`. */
  readonly name: string;
  readonly description: string;
  readonly valueHint: string;
}

export interface Integration {
  /** The runtime's id in the catalog. */
  readonly id: string;
  readonly label: string;
  /** Other words that name it on the command line: `claude` for `claude-code`. */
  readonly aliases: readonly string[];
  readonly options: readonly HooksOption[];
  planInstall(context: HooksContext): Promise<HooksPlan>;
  /** Runs whether or not the runtime is there any more (S-820, S-830). */
  planUninstall(context: HooksContext): Promise<HooksPlan>;
  /** What takes back the last step that was done; absent where there is no former text, as of a file of ours. */
  planUndo?(context: HooksContext): Promise<HooksPlan>;
  status(context: HooksContext): Promise<HooksStatus>;
}

export type HooksPlan =
  /** The runtime is not on this computer: nothing is made, and that is said (S-820). `message` is one sentence. */
  | { readonly kind: 'absent'; readonly message: string }
  /** It is all as it should be (C-327). */
  | {
      readonly kind: 'nothing';
      readonly files: readonly string[];
      readonly notes: readonly string[];
      /** Only where its flag was given. */
      readonly consent?: Consent;
    }
  | HooksRefusal
  | {
      readonly kind: 'changes';
      /** In the order in which they are to be done; what follows a failed one is not done. */
      readonly changes: readonly PlannedChange[];
      /** Sentences for the user that hold whether or not it is done: what was left alone, what runs beside ours. */
      readonly notes: readonly string[];
      /** Sentences that hold once it is done: what the user has to do then. */
      readonly afterwards: readonly string[];
      /** What only the user may allow, asked once the changes are done. */
      readonly consent?: Consent;
      /** Another file of the same runtime that stays as it is; it keeps nobody from the changes. */
      readonly left?: HooksRefusal;
    };

/** Nothing is changed. */
export interface HooksRefusal {
  readonly kind: 'refused';
  readonly path: string;
  /** One sentence: what is wrong with it, and what the runtime makes of that. */
  readonly message: string;
  /** What to do instead, one line each: lines to paste, keys to remove. */
  readonly byHand: readonly string[];
}

export interface PlannedChange {
  readonly path: string;
  /** What it does, in words: `add 18 hooks`. */
  readonly does: string;
  /** Unified. */
  readonly diff: string;
  /** Does it. Never throws for what the file system does. */
  commit(): Outcome;
}

/** A step that answers a security question of the runtime on the user's behalf. */
export interface Consent {
  /** The flag that is an explicit yes, without dashes: `trust-codex`. */
  readonly flag: string;
  /** One question for a terminal. */
  readonly question: string;
  /** What to do by hand where nobody said yes, one sentence each (S-825). */
  readonly declined: readonly string[];
  give(): Promise<ConsentOutcome>;
}

export type ConsentOutcome =
  | { readonly kind: 'given'; readonly message: string }
  /** `byHand`: what to do instead, one sentence each. */
  | { readonly kind: 'failed'; readonly message: string; readonly byHand: readonly string[] };

/** `yes`, `no`, `partly`, or `unknown` when it can't be found out; `unneeded` where a runtime knows no such thing. */
export type Certainty = 'yes' | 'no' | 'partly' | 'unknown' | 'unneeded';

/** What is known of the hooks of one runtime; the three certainties are kept apart. */
export interface HooksStatus {
  readonly present: boolean;
  /** Files in which entries of ours stand, or would. */
  readonly files: readonly string[];
  /** Our entries stand in the file as they would be written now. */
  readonly installed: Certainty;
  /** The runtime would run them, by its own word. */
  readonly trusted: Certainty;
  /** One sentence each: what is missing or stale, what was left alone, what switches hooks off. */
  readonly notes: readonly string[];
  /**
   * The distinct commands of ours that the file holds, each as the runtime would run it; the marked event is fired
   * through them.
   */
  readonly commands: readonly InstalledCommand[];
}

export interface InstalledCommand {
  /** As it stands in the file. */
  readonly command: string;
  /** The argument vector with which the runtime runs it: a shell, mostly. */
  readonly argv: readonly string[];
  /** The word behind `--agent`. */
  readonly agent: string;
}
