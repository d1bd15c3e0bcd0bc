/** Reads the hooks of a file in the shape that Claude Code and Codex share: events, groups, handlers. Pure. */
import { type Data, isArray, isObject, lookup, type Path } from '../edit/data.ts';

/** One handler that runs a command. */
export interface Place {
  readonly event: string;
  readonly group: number;
  readonly handler: number;
  readonly command: string;
  /** `undefined` where it has none, or none that is a number. */
  readonly timeout: number | undefined;
}

/** A group of one event. */
export interface Group {
  readonly index: number;
  readonly handlers: readonly Data[];
  readonly data: Data;
}

/** The events of a file that hold a list; what has another shape is not looked at (S-803). */
export function eventsIn(data: Data): readonly string[] {
  const hooks = lookup(data, ['hooks']);
  return isObject(hooks) ? Object.keys(hooks).filter((event) => isArray(hooks[event])) : [];
}

export function groupsOf(data: Data, event: string): readonly Group[] {
  const groups = lookup(data, ['hooks', event]);
  return (isArray(groups) ? groups : []).map((group, index) => {
    const handlers = isObject(group) && Object.hasOwn(group, 'hooks') ? group['hooks'] : undefined;
    return { index, handlers: isArray(handlers) ? handlers : [], data: group };
  });
}

/** The commands of one event, in the order of the file. */
export function placesOf(data: Data, event: string): readonly Place[] {
  return groupsOf(data, event).flatMap(({ index, handlers }) =>
    handlers.flatMap((handler, position): readonly Place[] => {
      if (!isObject(handler) || typeof handler['command'] !== 'string') return [];
      const { command, timeout } = handler;
      return [
        {
          event,
          group: index,
          handler: position,
          command,
          timeout: typeof timeout === 'number' ? timeout : undefined,
        },
      ];
    }),
  );
}

/** All commands of a file. */
export const allPlaces = (data: Data): readonly Place[] =>
  eventsIn(data).flatMap((event) => placesOf(data, event));

/** Where a handler lies in the file. */
export const pathOf = (place: Place): Path => ['hooks', place.event, place.group, 'hooks', place.handler];

/** The events of a list whose shape allows no entry, or all of them where `hooks` itself is no object (S-803). */
export function misshapen(data: Data, events: readonly string[]): readonly string[] {
  const hooks = lookup(data, ['hooks']);
  if (hooks === undefined) return [];
  if (!isObject(hooks)) return events;
  return events.filter((event) => Object.hasOwn(hooks, event) && !isArray(hooks[event]));
}
