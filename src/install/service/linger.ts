import { rmSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { writePrivate } from '../../runtime/files/private-file.ts';
import { readBounded } from '../../runtime/files/read-bounded.ts';
import { call } from './files.ts';
import type { ServiceReport, ServiceSpec, ServiceSystem } from './types.ts';

/** In the connector home: that lingering was switched on by us, and for whom. */
export const LINGER_MARK = 'linger.json';
const MARK_BYTES = 4_096;

/**
 * This user as loginctl takes it. Bun 1.4.5 knows a name only from the environment and else says "unknown"; a bare
 * environment has none, and the number does as well.
 */
export function userWord(
  env: Readonly<Record<string, string | undefined>> = process.env,
  uid: number | undefined = process.getuid?.(),
): string {
  return env['USER'] || env['LOGNAME'] || (uid === undefined ? userInfo().username : String(uid));
}

type System = Pick<ServiceSystem, 'run'>;

/**
 * A user manager ends with its user's last session unless it lingers (D5). Whether a user's processes outlive the
 * log-out is for that user to decide: without consent only the command is named; with it, lingering is switched on, and
 * written down if it was not on before, so that {@link unlinger} takes back only what was done here.
 */
export async function linger(
  system: System,
  spec: Pick<ServiceSpec, 'home' | 'linger'>,
  user: string = userWord(),
): Promise<ServiceReport> {
  if (await lingers(system, user)) return { ok: true, done: [], notes: await endsAnyway(system) };
  if (spec.linger !== true) {
    const words = `It ends when you log out. To keep it: daemon install --linger, or loginctl enable-linger ${user}`;
    return { ok: true, done: [], notes: [words] };
  }
  // Written first: a crash in between leaves a mark too many, never one too few.
  const written = writePrivate(join(spec.home, LINGER_MARK), `${JSON.stringify({ version: 1, user })}\n`);
  if (written.kind === 'failed')
    return { ok: false, done: [], notes: [`lingering was left off: ${LINGER_MARK}: ${written.code}`] };
  const said = await call(system, ['loginctl', 'enable-linger', user]);
  const done = [`lets ${user}’s services outlive the log-out`];
  if (said.ok) return { ok: true, done, notes: await endsAnyway(system) };
  rmSync(join(spec.home, LINGER_MARK), { force: true });
  return { ok: false, done: [], notes: [`loginctl enable-linger ${user}: ${said.said || 'refused'}`] };
}

/** Switches lingering off again, if it was switched on here; a second call does nothing. */
export async function unlinger(system: System, spec: Pick<ServiceSpec, 'home'>): Promise<ServiceReport> {
  const path = join(spec.home, LINGER_MARK);
  const user = markedUser(path);
  if (user === undefined) return { ok: true, done: [], notes: [] };
  const said = await call(system, ['loginctl', 'disable-linger', user]);
  if (!said.ok)
    return { ok: false, done: [], notes: [`loginctl disable-linger ${user}: ${said.said || 'refused'}`] };
  rmSync(path, { force: true });
  return { ok: true, done: [`${user}’s services end with the log-out again`], notes: [] };
}

/** Whether a user's services outlive the log-out already (D5). */
export async function lingers(system: System, user: string = userWord()): Promise<boolean> {
  const said = await call(system, ['loginctl', 'show-user', user, '--property=Linger', '--value']);
  return said.ok && said.said === 'yes';
}

/** systemd 255 was seen to end a user's services at the log-out although they linger (D6). */
async function endsAnyway(system: System): Promise<readonly string[]> {
  const said = await call(system, ['systemctl', '--version']);
  if (!said.ok || !/^systemd 255\b/.test(said.said)) return [];
  return ['systemd 255 may end it at the log-out all the same; the next client starts it again'];
}

function markedUser(path: string): string | undefined {
  const read = readBounded(path, MARK_BYTES);
  if (read.kind !== 'read') return undefined;
  try {
    const value: unknown = JSON.parse(read.bytes.toString('utf8'));
    const user: unknown =
      typeof value === 'object' && value !== null ? Reflect.get(value, 'user') : undefined;
    // A name that could be an option or another command's word is none of ours.
    return typeof user === 'string' && /^[A-Za-z_0-9][\w.@-]*\$?$/.test(user) ? user : undefined;
  } catch {
    // Damaged: nothing is known of what was done, so nothing is taken back.
    return undefined;
  }
}
