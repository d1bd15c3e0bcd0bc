/** Our entries in Claude Code's `settings.json` (S-811 … S-814). Pure. */
import type { Data } from '../edit/data.ts';
import { appendToArray, type Operation, removeFromArray, removeKey, setValue } from '../edit/operation.ts';
import type { Wiring } from '../edit/wiring.ts';
import { type ClaudeEvents, matcherOf } from './claude-events.ts';
import { eventsIn, groupsOf, misshapen, type Place, pathOf, placesOf } from './groups.ts';
import { whose } from './marker.ts';

/** Seconds; the sink needs milliseconds, and the program's own limit is a minute. */
const TIMEOUT_S = 5;

export function claudeWiring(command: string, events: ClaudeEvents): Wiring {
  return {
    id: 'claude-hooks',
    format: 'json',
    install(data) {
      const closed = new Set(misshapen(data, events.install));
      const held = eventsIn(data);
      const fresh = events.install.filter((event) => !closed.has(event) && oursIn(data, event).length === 0);
      return [
        ...fresh.map((event) => appendToArray(['hooks', event], groupFor(event, command))),
        ...held.flatMap((event) =>
          events.unknown.includes(event) ? takeAway(data, event) : bringUpToDate(data, event, command),
        ),
      ];
    },
    remove: (data) => eventsIn(data).flatMap((event) => takeOut(data, event, oursIn(data, event))),
  };
}

/** Ours, and as we write them: no argument, or only `--agent claude` (S-812). Others are their user's (S-813). */
export function oursIn(data: Data, event: string): readonly Place[] {
  return placesOf(data, event).filter(({ command }) => isOurs(command));
}

function isOurs(command: string): boolean {
  const reading = whose(command);
  return reading.kind === 'ours' && reading.bare && (reading.agent ?? 'claude') === 'claude';
}

/** Whether a command runs our sink in a way that is left alone here (C-304). */
export function isCustomised(command: string): boolean {
  return whose(command).kind !== 'foreign' && !isOurs(command);
}

const groupFor = (event: string, command: string): Data => {
  const matcher = matcherOf(event);
  return {
    ...(matcher === undefined ? {} : { matcher }),
    hooks: [{ type: 'command', command, timeout: TIMEOUT_S }],
  };
};

/** One of ours an event, the present one or else the first, in its place; the others go (S-812, C-302, C-303). */
function bringUpToDate(data: Data, event: string, command: string): readonly Operation[] {
  const ours = oursIn(data, event);
  const kept = ours.find((place) => place.command === command) ?? ours[0];
  if (kept === undefined) return [];
  const renewed =
    kept.command === command
      ? []
      : [
          setValue([...pathOf(kept), 'command'], command),
          ...(kept.timeout === undefined ? [setValue([...pathOf(kept), 'timeout'], TIMEOUT_S)] : []),
        ];
  const others = ours.filter((place) => place !== kept);
  return [...renewed, ...takeOut(data, event, others)];
}

/** The event with its name where nothing else is in it: the name alone would be warned of. */
function takeAway(data: Data, event: string): readonly Operation[] {
  const ours = oursIn(data, event);
  const handlers = groupsOf(data, event).flatMap((group) => group.handlers);
  if (ours.length === 0) return [];
  const isAll = handlers.length === ours.length;
  return isAll ? [removeKey(['hooks', event])] : takeOut(data, event, ours);
}

/** From the last to the first, so that positions hold; a group of nothing else goes as a whole (S-814). */
function takeOut(data: Data, event: string, places: readonly Place[]): readonly Operation[] {
  return groupsOf(data, event)
    .toReversed()
    .flatMap(({ index, handlers }) => {
      const here = places.filter((place) => place.group === index);
      if (here.length === 0) return [];
      if (here.length === handlers.length) return [removeFromArray(['hooks', event], index)];
      return here
        .toReversed()
        .map((place) => removeFromArray(['hooks', event, index, 'hooks'], place.handler));
    });
}
