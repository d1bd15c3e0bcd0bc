/** Sentences about what stands in a file beside our entries. Pure but for the environment that is handed in. */
import type { Data } from '../edit/data.ts';
import { allPlaces } from './groups.ts';
import type { HooksContext } from './integration.ts';
import { isRelated } from './marker.ts';

export interface Surroundings {
  /** Whether a command is our sink, called in a way of its user's own. */
  isCustomised(command: string): boolean;
}

/** S-813: left alone and counted. S-806: those of the program whose wire ours is both run. */
export function notesOn(data: Data, { isCustomised }: Surroundings): readonly string[] {
  const commands = allPlaces(data).map((place) => place.command);
  const customised = commands.filter(isCustomised).length;
  const related = commands.filter(isRelated).length;
  return [
    ...(customised === 0
      ? []
      : [
          `${counted(customised, 'hook')} of ours with other words ${isOrAre(customised)} left alone and ${customised === 1 ? 'runs' : 'run'} on.`,
        ]),
    ...(related === 0
      ? []
      : [`${counted(related, 'hook')} of omni-dev ${isOrAre(related)} left alone; both will run.`]),
  ];
}

/** S-803, R-23: what has another shape is not repaired. */
export function shapeNotes(events: readonly string[], wanted: number): readonly string[] {
  if (events.length === 0) return [];
  if (events.length === wanted) return ['Not installed: "hooks" is not an object in this file.'];
  return [`Not installed for ${events.join(', ')}: not a list in this file.`];
}

/** a runtime that is started without the variable reports to the usual home. */
export function homeNotes({ env }: Pick<HooksContext, 'env'>): readonly string[] {
  const name = ['SHADOWOB_CONNECTOR_HOME', 'SHADOWOB_HOME'].find((one) => env[one]);
  return name === undefined
    ? []
    : [`${name} is set here: hooks report to that home only where the runtime is started with it too.`];
}

export const counted = (count: number, word: string): string => `${count} ${word}${count === 1 ? '' : 's'}`;
const isOrAre = (count: number): string => (count === 1 ? 'is' : 'are');
