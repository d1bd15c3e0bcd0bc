/**
 * Our entries in Codex's `hooks.json`, or in the `[hooks]` of its `config.toml` (S-821 … S-824). Codex trusts a hook by
 * its position and content, so entries of others never move. Pure.
 */
import { type Data, isArray, isEmpty, isObject, lookup } from '../edit/data.ts';
import type { FormatId } from '../edit/document.ts';
import {
  appendToArray,
  type Operation,
  removeFromArray,
  replaceInArray,
  setValue,
} from '../edit/operation.ts';
import type { Wiring } from '../edit/wiring.ts';
import { eventsIn, type Group, groupsOf, misshapen, type Place, pathOf, placesOf } from './groups.ts';
import { whose } from './marker.ts';

/** Seconds; Codex clamps those of the last two to 3 and warns of more. */
const TIMEOUT_S = 5;
const TIMEOUTS_S: Readonly<Record<string, number>> = { Interrupt: 3, SessionEnd: 3 };
const WITH_MATCHER: ReadonlySet<string> = new Set(['PreToolUse', 'PostToolUse']);

/** S-821. A name that a version does not know is ignored by it. */
export const CODEX_EVENTS: readonly string[] = [
  'SessionStart',
  'UserPromptSubmit',
  'PreToolUse',
  'PostToolUse',
  'PermissionRequest',
  'Stop',
  'Interrupt',
  'SessionEnd',
  'PreCompact',
  'PostCompact',
  'SubagentStart',
  'SubagentStop',
];

export function codexWiring(command: string, format: Extract<FormatId, 'json' | 'toml'>): Wiring {
  return {
    id: 'codex-hooks',
    format,
    install(data) {
      const closed = new Set(misshapen(data, CODEX_EVENTS));
      const fresh = CODEX_EVENTS.filter((event) => !closed.has(event) && oursIn(data, event).length === 0);
      return [
        ...eventsIn(data).flatMap((event) =>
          oursIn(data, event).flatMap((place) => bringUpToDate(place, command)),
        ),
        ...fresh.map((event) => appendToArray(['hooks', event], groupFor(event, command))),
      ];
    },
    remove: (data) => eventsIn(data).flatMap((event) => takeOut(data, event)),
    settled: withoutEmptyEnds,
  };
}

/** Ours, whatever path, words or tag (S-822); one with something before it is its user's (S-805). */
export function oursIn(data: Data, event: string): readonly Place[] {
  return placesOf(data, event).filter(({ command }) => whose(command).kind === 'ours');
}

/** Events in which taking ours out moves a hook that stands behind it in the same group (S-824). */
export function shiftedEvents(data: Data): readonly string[] {
  return eventsIn(data).filter((event) => {
    const ours = oursIn(data, event);
    return groupsOf(data, event).some(({ index, handlers }) => {
      const here = ours.filter((place) => place.group === index).map((place) => place.handler);
      const first = Math.min(...here);
      return handlers.some((_, position) => position > first && !here.includes(position));
    });
  });
}

const timeoutOf = (event: string): number => TIMEOUTS_S[event] ?? TIMEOUT_S;

const groupFor = (event: string, command: string): Data => ({
  ...(WITH_MATCHER.has(event) ? { matcher: '*' } : {}),
  hooks: [{ type: 'command', command, timeout: timeoutOf(event) }],
});

function bringUpToDate(place: Place, command: string): readonly Operation[] {
  const timeout = timeoutOf(place.event);
  return [
    ...(place.command === command ? [] : [setValue([...pathOf(place), 'command'], command)]),
    ...(place.timeout === timeout ? [] : [setValue([...pathOf(place), 'timeout'], timeout)]),
  ];
}

/** S-823: a group that is emptied keeps its place for those behind it; at the end, empty groups go. */
function takeOut(data: Data, event: string): readonly Operation[] {
  const ours = oursIn(data, event);
  if (ours.length === 0) return [];
  const groups = groupsOf(data, event);
  const isLeft = ({ index, handlers }: Group) =>
    handlers.some(
      (_, position) => !ours.some((place) => place.group === index && place.handler === position),
    );
  const lastLeft = groups.findLastIndex((group) => isLeft(group) || !isPlaceholderAfter(group, ours));
  return groups.toReversed().flatMap((group): readonly Operation[] => {
    if (group.index > lastLeft) return [removeFromArray(['hooks', event], group.index)];
    const here = ours.filter((place) => place.group === group.index);
    if (here.length === 0) return [];
    if (here.length === group.handlers.length)
      return [replaceInArray(['hooks', event], group.index, { hooks: [] })];
    return here
      .toReversed()
      .map((place) => removeFromArray(['hooks', event, group.index, 'hooks'], place.handler));
  });
}

/** Whether a group holds nothing once ours are gone: only ours, or a list that is empty already. */
function isPlaceholderAfter(group: Group, ours: readonly Place[]): boolean {
  if (ours.some((place) => place.group === group.index)) return true;
  return isObject(group.data) && isEmpty(lookup(group.data, ['hooks']));
}

/** The data without empty groups at the end of an event, and without events and a `hooks` of nothing else. */
function withoutEmptyEnds(data: Data): Data {
  const hooks = lookup(data, ['hooks']);
  if (!isObject(data) || !isObject(hooks)) return data;
  const kept = Object.entries(hooks).flatMap(([event, groups]): readonly [string, Data][] => {
    if (!isArray(groups)) return [[event, groups]];
    const last = groups.findLastIndex((group) => !(isObject(group) && isEmpty(lookup(group, ['hooks']))));
    return last < 0 ? [] : [[event, groups.slice(0, last + 1)]];
  });
  const { hooks: _, ...rest } = data;
  return kept.length === 0 ? rest : { ...data, hooks: Object.fromEntries(kept) };
}
