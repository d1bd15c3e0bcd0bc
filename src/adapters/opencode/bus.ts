import { objectOf, textOf } from './values.ts';

/** One event of OpenCode's bus. */
export interface BusEvent {
  readonly type: string;
  readonly properties: Readonly<Record<string, unknown>>;
  /** The instance's directory, on `/global/event` only. */
  readonly directory?: string;
}

/**
 * Reads the data of one stream line: `{directory, project, payload:{type, properties}}` of `/global/event`, or
 * `{type, properties}` of `/event` and of a plugin. The `sync` twin of a durable event is none of its own.
 */
export function readBusEvent(data: unknown): BusEvent | undefined {
  const outer = objectOf(data);
  const inner = objectOf(outer?.['payload']) ?? outer;
  const type = textOf(inner?.['type']);
  if (!inner || type === undefined || type === 'sync') return undefined;
  const directory = textOf(outer?.['directory']);
  return { type, properties: objectOf(inner['properties']) ?? {}, ...(directory ? { directory } : {}) };
}

/**
 * False for lines that can be dropped unparsed: `sync` twins (half of all), `plugin.added` (hundreds at a start),
 * heartbeats. Looks at the first `"type":"` of the line, which a quoted text inside the directory can't imitate
 * (its quotes are escaped); a line without one is parsed to be counted.
 */
export function mayMatter(line: string): boolean {
  const type = /"type":"([^"]{1,80})"/.exec(line.slice(0, 4_096))?.[1];
  return type === undefined || /^(?:session|message|permission|question)\.|^server\.instance\./.test(type);
}

/** The session that an event is about. */
export function sessionOf(event: BusEvent): string | undefined {
  const { properties } = event;
  const nested = objectOf(properties['info']) ?? objectOf(properties['part']);
  const id = textOf(properties['sessionID']) ?? textOf(nested?.['sessionID']) ?? textOf(nested?.['id']);
  return id?.startsWith('ses') ? id : undefined;
}
