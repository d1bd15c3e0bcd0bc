import { versionText } from '../version.ts';
import type { World } from './world.ts';

/** What decides which folders and servers the adapters look at. */
const NAMES = [
  'CLAUDE_CONFIG_DIR',
  'CODEX_HOME',
  'OPENCODE_DATA_DIR',
  'OPENCODE_DB',
  'OPENCODE_SERVER_URL',
  'OPENCODE_SERVER_USERNAME',
  'OPENCODE_SERVER_PASSWORD',
  'SHADOWOB_CONNECTOR_OPENCODE_URL',
  'PI_CODING_AGENT_DIR',
  'PI_CODING_AGENT_SESSION_DIR',
  'XDG_DATA_HOME',
  'APPDATA',
  'LOCALAPPDATA',
] as const;

/**
 * A hash of what decides where sessions are looked for. A command whose own is another than the daemon's does not ask
 * it: it would be told of other folders. A hash, since a password is among what goes in.
 */
export function worldPrint(world: Pick<World, 'env' | 'home' | 'platform'>): string {
  const parts = [world.platform, world.home, ...NAMES.map((name) => world.env[name] || null)];
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}

/** The commit that this build was made from (S-326). */
export function buildCommit(): string {
  return /^commit ([^,]+),/m.exec(versionText())?.[1] ?? 'unknown';
}
