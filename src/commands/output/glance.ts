/** What a status line shows: the daemon's answer to `glance`. */
export interface Glance {
  /** False while the daemon has not looked at everything once. */
  readonly ready: boolean;
  /** Sessions that wait for their user, that work, and that anybody has open. */
  readonly waiting: number;
  readonly working: number;
  readonly present: number;
  /** Those that need their user first. */
  readonly sessions: readonly GlanceRow[];
}

export interface GlanceRow {
  readonly runtimeId: string;
  /** The product's name. */
  readonly runtime: string;
  readonly sessionId: string;
  readonly state: string;
  readonly folder?: string;
  /** Only where it was asked for. */
  readonly title?: string;
  readonly needsYou?: true;
  /** An editor window shows it: it can be brought to the front (S-854). */
  readonly window?: true;
}

/**
 * Reads the daemon's answer by hand: the prompt that waits for it has no time for a schema library. What doesn't fit is
 * left out; undefined for what is no answer at all.
 */
export function readGlance(text: string): Glance | undefined {
  const reply = fieldsOf(parse(text));
  const payload = fieldsOf(reply?.['payload']);
  if (reply?.['ok'] !== true || payload?.['ready'] !== true) return undefined;
  const rows = Array.isArray(payload['sessions']) ? payload['sessions'] : [];
  return {
    ready: true,
    waiting: countOf(payload['waiting']),
    working: countOf(payload['working']),
    present: countOf(payload['present']),
    sessions: rows.flatMap(readRow),
  };
}

type Fields = Readonly<Record<string, unknown>>;

function readRow(value: unknown): readonly GlanceRow[] {
  const row = fieldsOf(value);
  const [runtimeId, runtime, sessionId, state] = ['runtimeId', 'runtime', 'sessionId', 'state'].map((name) =>
    textOf(row?.[name]),
  );
  if (
    row === undefined ||
    runtimeId === undefined ||
    runtime === undefined ||
    sessionId === undefined ||
    state === undefined
  )
    return [];
  const [folder, title] = [textOf(row['folder']), textOf(row['title'])];
  return [
    {
      runtimeId,
      runtime,
      sessionId,
      state,
      ...(folder === undefined ? {} : { folder }),
      ...(title === undefined ? {} : { title }),
      ...(row['needsYou'] === true ? { needsYou: true as const } : {}),
      ...(row['window'] === true ? { window: true as const } : {}),
    },
  ];
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Whatever answers there, it is not our service.
    return undefined;
  }
}

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : 0;
}
