/**
 * Exit codes, in decades by category (all below 128, documented in `docs/exit-codes.md`). Scripts may rely on
 * them; a number is never given a second meaning.
 */
export const EXIT = {
  ok: 0,
  unexpected: 1,
  notLinked: 10,
  usage: 20,
  unknownCommand: 21,
  notFound: 22,
  ambiguous: 23,
  badValue: 24,
  network: 30,
  timedOut: 31,
  stillRunning: 32,
  unsupported: 40,
  runtimeMissing: 41,
  refused: 42,
  ownedElsewhere: 43,
  turnFailed: 44,
  turnStopped: 45,
  survived: 46,
  configRefused: 50,
  hooksIncomplete: 51,
  daemon: 60,
} as const;

export type ExitName = keyof typeof EXIT;
export type ExitCode = (typeof EXIT)[ExitName];

/**
 * A failure that the user can understand: the thing, the reason, and the next command to try. Everything else
 * that is thrown is a defect of ours and leaves with code 1.
 */
export class ConnectorError extends Error {
  override readonly name = 'ConnectorError';
  readonly kind: ExitName;
  /** A command or an action to try next, one line. */
  readonly next: string | undefined;

  constructor(kind: ExitName, message: string, next?: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.kind = kind;
    this.next = next;
  }

  get exitCode(): ExitCode {
    return EXIT[this.kind];
  }
}

/** What was thrown, as one line; for logs and for `problems`, never with a stack. */
export function reasonOf(thrown: unknown): string {
  const text = thrown instanceof Error ? thrown.message : String(thrown);
  return text.split('\n', 1)[0] ?? text;
}
