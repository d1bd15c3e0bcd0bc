import type { FileStat } from '../../runtime/files/file-system.ts';
import type { FileReader, OpenFile, ReadResult } from '../../runtime/files/head-tail.ts';
import type { Line } from '../../runtime/files/jsonl.ts';
import type { ContextUsage } from '../../runtime/session/session.ts';
import { cleanTitle } from '../../runtime/session/text.ts';
import { isInherited } from './inherited.ts';
import type { SessionMeta } from './meta.ts';
import { type RolloutRecord, toRecord } from './records.ts';
import { MAY_BE, mayBe } from './shape.ts';
import { applyRecord, NO_TURN, type Turn } from './turn.ts';
import { isAtLeast } from './version.ts';

/** A model and a folder that a turn ran with. */
export interface TurnContext {
  readonly model?: string;
  readonly cwd?: string;
}

/** What one rollout says about its thread, read from both ends. */
export interface Rollout {
  /** The first `session_meta` (G5); absent when the first line is damaged. */
  readonly meta?: SessionMeta;
  readonly turn: Turn;
  /** The first real prompt, cleaned; absent if none was found, or if it was not looked for. */
  readonly prompt?: string;
  readonly promptSearched: boolean;
  /** The last one (X17), where it stands near the end. */
  readonly context?: TurnContext;
  /** The first one, where it was come across. */
  readonly firstContext?: TurnContext;
  readonly usage?: ContextUsage;
  readonly bare: boolean;
}

/** The first line alone is over 20 KB since 0.171. */
const HEAD_STEP = 32 * 1024;
/** The first prompt stands behind the instructions of the first turn: 40 to 60 KB in. */
export const PROMPT_CAP = 512 * 1024;
/** A tail is read back this far for a turn event; a single tool output may be megabytes. */
export const TURN_CAP = 16 * 1024 * 1024;
/** And this far for what is only nice to know of a turn whose end is found: its model and folder. */
const CONTEXT_REACH = 48 * 1024;
/** Files without turn events at all end in a message; more of them tells nothing new. */
const EVENTLESS_REACH = 48 * 1024;
/** A turn that may have failed without saying so is read to its start, but no further back than this. */
const SILENT_REACH = 192 * 1024;

/** A rollout, and the offset just past its last whole line; absent if no line end was seen. */
export interface RolloutRead {
  readonly rollout: Rollout;
  readonly committed: number | undefined;
}

/** What is not known from elsewhere, and so worth reading further for. */
export interface Wanted {
  readonly prompt: boolean;
  /** The last model and folder. */
  readonly context: boolean;
}

/**
 * Reads a rollout in bounded steps, whatever its size (X9: 37 GB): the first line, the first prompt if asked for,
 * and as much of the tail as holds the newest turn event.
 */
export function readRollout(
  reader: FileReader,
  path: string,
  known: FileStat,
  want: Wanted,
): ReadResult<RolloutRead> {
  return reader.read(path, (file) => new RolloutReading().open(file, want), known);
}

/** The same from lines that are all at hand (an unpacked `.jsonl.zst`). */
export function rolloutOf(lines: readonly Line[]): Rollout {
  return new RolloutReading().whole(lines);
}

const TURN_KINDS: ReadonlySet<string> = new Set([
  'turn-started',
  'turn-ended',
  'turn-aborted',
  'rolled-back',
]);

/** One reading of one file. Each line is classified and parsed at most once, however often the tail grows. */
class RolloutReading {
  #meta: SessionMeta | undefined;
  #prompt: string | undefined;
  #promptsSeen = 0;
  #eventless = false;
  #bare = false;
  readonly #records = new Map<Line, RolloutRecord>();
  readonly #bits = new Map<Line, number>();

  open(file: OpenFile, want: Wanted): RolloutRead {
    const head = file.head({
      firstStep: HEAD_STEP,
      ...(want.prompt ? { cap: PROMPT_CAP } : {}),
      enough: (lines) => lines.length > 0 && (!want.prompt || this.#findPrompt(lines)),
    });
    this.#begin(head.lines);
    this.#eventless = head.lines.length > 1 && this.#hasNoEvents(head.lines);
    if (head.whole)
      return { rollout: this.#summarize(head.lines, head.lines, want.prompt), committed: head.committed };
    const reach = want.context ? CONTEXT_REACH : 0;
    const tail = file.tail({ cap: TURN_CAP, enough: (lines) => this.#tells(lines, reach) });
    return { rollout: this.#summarize(tail.lines, head.lines, want.prompt), committed: tail.committed };
  }

  whole(lines: readonly Line[]): Rollout {
    this.#findPrompt(lines);
    this.#begin(lines);
    this.#eventless = this.#hasNoEvents(lines);
    return this.#summarize(lines, lines, true);
  }

  #record(line: Line): RolloutRecord {
    const known = this.#records.get(line);
    if (known) return known;
    const record = toRecord(line.record);
    this.#records.set(line, record);
    return record;
  }

  #mayBe(line: Line, bit: number): boolean {
    const known = this.#bits.get(line) ?? mayBe(line);
    this.#bits.set(line, known);
    return (known & bit) !== 0;
  }

  /** Files of versions that wrote no turn events; others have them, if not yet or not in these lines. */
  #hasNoEvents(lines: readonly Line[]): boolean {
    if (this.#meta?.historyMode !== undefined || isAtLeast(this.#meta?.cliVersion, EVENTS_SINCE))
      return false;
    return !lines.some((line) => this.#mayBe(line, MAY_BE.turnEvent));
  }

  #begin(lines: readonly Line[]): void {
    const first = lines[0];
    if (!first) return;
    const record = this.#record(first);
    this.#bare = record.bare === true;
    if (record.kind === 'meta') this.#meta = record.meta;
  }

  /** Looks through the lines that are new since the last call. */
  #findPrompt(lines: readonly Line[]): boolean {
    if (this.#promptsSeen === 0) this.#begin(lines);
    for (const line of lines.slice(this.#promptsSeen)) {
      this.#promptsSeen += 1;
      if (this.#prompt !== undefined || !this.#mayBe(line, MAY_BE.prompt)) continue;
      const record = this.#record(line);
      if (record.kind === 'prompt' && record.text !== undefined && !isInherited(record, this.#meta))
        this.#prompt = cleanTitle(record.text);
    }
    return this.#prompt !== undefined;
  }

  #isEvent(line: Line): boolean {
    return (
      this.#mayBe(line, MAY_BE.turnEvent) && TURN_KINDS.has(this.#record(line).kind) && this.#isOwn(line)
    );
  }

  #isOwn(line: Line): boolean {
    return !isInherited(this.#record(line), this.#meta);
  }

  #isStart(line: Line): boolean {
    return this.#isEvent(line) && this.#record(line).kind === 'turn-started';
  }

  /** Whether a tail already says how the newest turn stands, and with which model and folder. */
  #tells(lines: readonly Line[], contextReach: number): boolean {
    const first = lines[0];
    const last = lines.at(-1);
    if (!first || !last) return false;
    const reach = last.end - first.start;
    if (this.#eventless && reach >= EVENTLESS_REACH) return true;
    const event = lines.findLast((line) => this.#isEvent(line));
    if (!event) return false;
    const record = this.#record(event);
    if (record.kind === 'turn-started') return true;
    const mayHaveFailed = record.kind === 'turn-ended' && record.silent && !record.failed && !record.modern;
    if (mayHaveFailed && !lines.some((line) => this.#isStart(line))) return reach >= SILENT_REACH;
    return reach >= contextReach || lines.some((line) => this.#mayBe(line, MAY_BE.context));
  }

  #summarize(lines: readonly Line[], head: readonly Line[], promptSearched: boolean): Rollout {
    const context = this.#context(lines.findLast((line) => this.#has(line, MAY_BE.context, 'context')));
    const firstContext = this.#context(head.find((line) => this.#has(line, MAY_BE.context, 'context')));
    const usage = lines.findLast((line) => this.#has(line, MAY_BE.usage, 'usage'));
    const counted = usage ? this.#record(usage) : undefined;
    return {
      ...(this.#meta ? { meta: this.#meta } : {}),
      turn: this.#withLastTime(this.#reduce(lines), lines),
      ...(this.#prompt ? { prompt: this.#prompt } : {}),
      promptSearched,
      ...(context ? { context } : {}),
      ...(firstContext ? { firstContext } : {}),
      ...(counted?.kind === 'usage' ? { usage: counted.usage } : {}),
      bare: this.#bare,
    };
  }

  #has(line: Line, bit: number, kind: RolloutRecord['kind']): boolean {
    return this.#mayBe(line, bit) && this.#record(line).kind === kind && this.#isOwn(line);
  }

  #context(line: Line | undefined): TurnContext | undefined {
    const record = line ? this.#record(line) : undefined;
    if (record?.kind !== 'context') return undefined;
    const { model, cwd } = record;
    return { ...(model ? { model } : {}), ...(cwd ? { cwd } : {}) };
  }

  /**
   * The newest turn of these lines. A turn that has ended needs its events only; an open one is followed record by
   * record from its start. Gives what folding every record would give.
   */
  #reduce(lines: readonly Line[]): Turn {
    const start = lines.findLastIndex((line) => this.#isStart(line));
    const own = start < 0 ? lines : lines.slice(start);
    const brief = this.#fold(own.filter((line) => this.#isEvent(line)));
    if (start < 0 && copiesWithoutOrdinals(this.#meta)) return brief;
    const needsAll = brief.phase !== 'ended' || (brief.end === 'failed' && brief.errorCode === undefined);
    return needsAll ? this.#fold(own) : brief;
  }

  #fold(lines: readonly Line[]): Turn {
    return lines
      .filter((line) => this.#isOwn(line))
      .reduce((turn: Turn, line) => applyRecord(turn, this.#record(line)), {
        ...NO_TURN,
        explicit: !this.#eventless,
      });
  }

  #withLastTime(turn: Turn, lines: readonly Line[]): Turn {
    const last = lines.at(-1);
    const at = last ? this.#record(last).at : undefined;
    return at === undefined || (turn.lastAt ?? 0) >= at ? turn : { ...turn, lastAt: at };
  }
}

/** The oldest version that was seen to write turn events; 0.46 did not. */
const EVENTS_SINCE = 104;

/** A fork of an older version: its copied records can be told from its own only by the turns they belong to. */
function copiesWithoutOrdinals(meta: SessionMeta | undefined): boolean {
  return meta?.forkedFromId !== undefined && meta.base === undefined && meta.ownFromOrdinal === undefined;
}
