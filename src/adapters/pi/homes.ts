import { posix, win32 } from 'node:path';
import type { AdapterContext } from '../adapter.ts';

export const RUNTIME_ID = 'pi';
/** The store of session files; the reports of the socket lie in the same one. */
export const INSTANCE_ID = 'transcripts';

/** Where pi keeps what we read (1.6.0). `auth.json` and `models.json` beside it are never opened. */
export interface PiHome {
  readonly root: string;
  /** `--<cwd>--/<time>_<uuid>.jsonl`; files that were put in flat count too. */
  readonly sessions: string;
  /** `PI_CODING_AGENT_SESSION_DIR`: files lie flat in it, without a folder for the working directory. */
  readonly flat?: string;
  readonly extensions: string;
}

/** `$PI_CODING_AGENT_DIR` if non-empty, else `~/.pi/agent`. */
export function piHome(context: Pick<AdapterContext, 'env' | 'home' | 'platform'>): PiHome {
  const { env, home, platform } = context;
  const path = platform === 'win32' ? win32 : posix;
  const place = (named: string): string =>
    /^~(?=$|[\\/])/.test(named) ? path.join(home, named.slice(1)) : path.resolve(home, named);
  const root = env['PI_CODING_AGENT_DIR']
    ? place(env['PI_CODING_AGENT_DIR'])
    : path.join(home, '.pi', 'agent');
  const flat = env['PI_CODING_AGENT_SESSION_DIR'];
  return {
    root,
    sessions: path.join(root, 'sessions'),
    extensions: path.join(root, 'extensions'),
    ...(flat ? { flat: place(flat) } : {}),
  };
}
