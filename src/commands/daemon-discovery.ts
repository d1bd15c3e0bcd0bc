import { transcriptListing } from '../adapters/claude-code/listing.ts';
import { rolloutListing } from '../adapters/codex/listing.ts';
import type { DiscoveryPorts } from '../runtime/daemon/feeds/ports.ts';
import { systemHost } from '../runtime/process/spawn.ts';
import { adapterContext, type World } from './world.ts';

/** Where the daemon's discovery feeds look on this computer (S-601, S-620). */
export function discoveryPorts(world: World): DiscoveryPorts {
  const context = adapterContext(world);
  return { transcripts: transcriptListing(context), rollouts: rolloutListing(context, systemHost) };
}
