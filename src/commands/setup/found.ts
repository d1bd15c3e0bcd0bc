import { editorsHere } from '../../install/wrapper/wrapper.ts';
import { lookAtRuntimes } from '../runtimes.ts';
import type { World } from '../world.ts';

/** What is on this computer, in a few lines. */
export interface Found {
  readonly runtimes: readonly {
    readonly id: string;
    readonly label: string;
    /** Null for a program that did not say it in time. */
    readonly version: string | null;
  }[];
  /** Editors of the VS Code family, by name. */
  readonly editors: readonly string[];
}

/** The programs as `runtime-scan` finds them, without asking any of them for more than a version. */
export async function lookAround(world: World): Promise<Found> {
  const { runtimes } = await lookAtRuntimes(world, { refresh: false, signIn: 'remembered' });
  const here = runtimes.filter(({ status }) => status === 'available');
  const { env, home, platform } = world;
  return {
    runtimes: here.map(({ entry, version }) => ({ id: entry.id, label: entry.label, version })),
    editors: editorsHere({ env, home, platform }).map(({ label }) => label),
  };
}

/** The same in words. */
export function foundText({ runtimes, editors }: Found): string {
  // Some programs say their own name with it.
  const programs = runtimes.map(({ label, version }) =>
    `${label} ${/\d\S*/.exec(version ?? '')?.[0] ?? ''}`.trim(),
  );
  return [
    programs.length > 0
      ? `On this computer: ${programs.join(', ')}.`
      : 'None of the runtimes that we know is on this computer: shadowob-connector runtime-scan says how to install one.',
    ...(editors.length > 0 ? [`Editors: ${editors.join(', ')}.`] : []),
  ].join('\n');
}
