import type { HooksContext, Integration } from '../../install/hooks/integration.ts';
import type { ExitName } from '../../runtime/errors.ts';
import type { Place } from '../daemon-control.ts';
import { daemonStatus } from '../daemon-status.ts';
import { arrived, arrivesWords, type Look, lookAtHooks, lookData } from '../hooks-status.ts';
import { daemonWarnings } from '../hooks-world.ts';
import type { World } from '../world.ts';
import { hooksId, trustId } from './hooks-steps.ts';
import { SERVICE_ID } from './service-steps.ts';
import { holds, type Sofar } from './step.ts';

/** That what was said to be done is so, by the words of `hooks-status` and `daemon status`. */
export interface Proof {
  /** A row for each runtime whose hooks stand, and one for the daemon. */
  readonly lines: readonly (readonly [string, string])[];
  readonly data: { readonly hooks: readonly object[]; readonly daemon: unknown };
  readonly warnings: readonly string[];
  /** Something that its owner wanted does not hold. */
  readonly problem?: ExitName;
}

export interface Proving {
  readonly integrations: readonly Integration[];
  readonly context: HooksContext;
  readonly place: Place;
  readonly sofar: Sofar;
}

/** Fires a marked event through each command that stands, then asks the daemon: in that order, an event may start it. */
export async function prove(world: World, proving: Proving): Promise<Proof> {
  const { integrations, context, place, sofar } = proving;
  const ours = integrations.filter((one) => holds(sofar.get(hooksId(one))));
  const looks = await lookAtHooks(world, ours, context, true);
  const status = await daemonStatus(world, place.socketPath, place.home);
  const data = status.kind === 'document' ? status.data : null;
  const failure = status.kind === 'document' ? status.failure : undefined;
  const isWanted = holds(sofar.get(SERVICE_ID));
  const problem = looks.every((look) => isWell(look, sofar, isWanted)) ? undefined : 'hooksIncomplete';
  const missing = isWanted && failure ? 'daemon' : undefined;
  const found = problem ?? missing;
  return {
    lines: [
      ...looks.map((look): readonly [string, string] => [look.integration.label, hooksWords(look)]),
      ['Daemon', daemonWords(data, failure?.message)],
    ],
    data: { hooks: looks.map(lookData), daemon: data },
    warnings: await daemonWarnings(world),
    ...(found === undefined ? {} : { problem: found }),
  };
}

/** Trust that was not given, and a daemon that was not wanted, are its owner's choice and no failure. */
function isWell({ integration, status, deliveries }: Look, sofar: Sofar, isDaemonWanted: boolean): boolean {
  const isTrusted =
    status.trusted === 'yes' || status.trusted === 'unneeded' || !holds(sofar.get(trustId(integration)));
  const arrives = deliveries.every(
    ({ delivery }) => arrived(delivery) || (delivery.kind === 'nobody' && !isDaemonWanted),
  );
  return status.installed === 'yes' && isTrusted && arrives;
}

function hooksWords({ status, deliveries }: Look): string {
  const trust = status.trusted === 'unneeded' ? [] : [`trusted ${status.trusted}`];
  const events = deliveries.map(
    ({ delivery }) => `a marked event arrives: ${arrivesWords(delivery).replace('  ', ', ')}`,
  );
  return [`installed ${status.installed}`, ...trust, ...events].join('; ');
}

function daemonWords(data: unknown, failure: string | undefined): string {
  if (failure !== undefined) return failure;
  const about: Readonly<Record<string, unknown>> =
    typeof data === 'object' && data !== null ? { ...data } : {};
  const kept = `service: ${String(about['service'])}`;
  if (about['running'] !== true) return `not running, the first client starts it; ${kept}`;
  return `running, version ${String(about['version'])}, pid ${String(about['pid'])}; ${kept}`;
}
