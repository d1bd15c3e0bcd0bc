import { constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { SESSIONS } from '../../limits.ts';
import type { AwakeClock } from '../clock.ts';
import { type ServiceLog, silent } from '../log.ts';

/** What a `.git` path is, and the first bytes of a small file; replaced in tests to count the work. */
export interface RepoFiles {
  kind(path: string): Promise<'file' | 'folder' | 'missing'>;
  /** The beginning of a small text file, `undefined` if it can't be read. */
  head(path: string): Promise<string | undefined>;
}

/** Finds the name of the repository that a folder belongs to. */
export interface RepoLookup {
  nameOf(cwd: string): Promise<string | undefined>;
  readonly cached: number;
}

/** Folders above a session that are looked at; deeper than any path that systems allow. */
const MAX_DEPTH = 256;
/** `.git` files and `commondir` hold one path. */
const HEAD_BYTES = 4_096;

/**
 * The main repository's name (S-013): a linked worktree reports its parent repository, a bare repository its own
 * name, anything else nothing. Reads some small files and starts no process. Answers are kept for a minute, so a
 * `git init` shows up, and for at most 256 folders, all forgotten when full (K-38). Never rejects.
 */
export function createRepoLookup(options: {
  readonly clock: AwakeClock;
  readonly files?: RepoFiles;
  readonly log?: ServiceLog;
}): RepoLookup {
  const { clock } = options;
  const files = options.files ?? systemRepoFiles;
  const log = options.log ?? silent;
  const cache = new Map<string, { readonly at: number; readonly name: Promise<string | undefined> }>();

  const look = async (cwd: string): Promise<string | undefined> => {
    try {
      return await findName(cwd, files);
    } catch (error) {
      // A failure is not "no repository", but the session is shown all the same (S-938).
      log('debug', 'repo_lookup_failed', {
        cwd,
        error: error instanceof Error ? error.message : String(error),
      });
      return undefined;
    }
  };

  return {
    nameOf(cwd) {
      const now = clock.awakeMs();
      const known = cache.get(cwd);
      if (known && now - known.at <= SESSIONS.repoCacheMs) return known.name;
      if (!known && cache.size >= SESSIONS.repoCache) cache.clear();
      const name = look(cwd);
      cache.set(cwd, { at: now, name });
      return name;
    },
    get cached() {
      return cache.size;
    },
  };
}

async function findName(cwd: string, files: RepoFiles): Promise<string | undefined> {
  if (!isAbsolute(cwd) || cwd.includes('\0')) return undefined;
  let folder = resolve(cwd);
  for (let depth = 0; depth < MAX_DEPTH; depth += 1) {
    const common = await commonFolder(folder, files);
    if (common !== undefined) return nameOfCommon(common);
    const parent = dirname(folder);
    if (parent === folder) return undefined;
    folder = parent;
  }
  return undefined;
}

/** The common git folder of a work tree or bare repository that begins at this folder. */
async function commonFolder(folder: string, files: RepoFiles): Promise<string | undefined> {
  const dotGit = join(folder, '.git');
  const kind = await files.kind(dotGit);
  if (kind === 'folder') return (await isGitFolder(dotGit, files)) ? dotGit : undefined;
  if (kind === 'file') return linkedFolder(folder, await files.head(dotGit), files);
  return (await isGitFolder(folder, files)) ? folder : undefined;
}

/** `gitdir: <path>` leads to the worktree's own folder, and its `commondir` to the one that all share. */
async function linkedFolder(
  folder: string,
  text: string | undefined,
  files: RepoFiles,
): Promise<string | undefined> {
  const target = /^gitdir: (.+?)\s*$/m.exec(text ?? '')?.[1];
  if (target === undefined) return undefined;
  const own = resolve(folder, target);
  const common = (await files.head(join(own, 'commondir')))?.trim();
  return common ? resolve(own, common) : own;
}

async function isGitFolder(folder: string, files: RepoFiles): Promise<boolean> {
  if ((await files.kind(join(folder, 'HEAD'))) !== 'file') return false;
  const kinds = await Promise.all([files.kind(join(folder, 'objects')), files.kind(join(folder, 'refs'))]);
  return kinds.every((kind) => kind === 'folder');
}

function nameOfCommon(common: string): string | undefined {
  const base = basename(common);
  const name = base === '.git' ? basename(dirname(common)) : base.replace(/\.git$/, '');
  return name === '' ? undefined : name;
}

const systemRepoFiles: RepoFiles = {
  async kind(path) {
    try {
      const stats = await stat(path);
      return stats.isDirectory() ? 'folder' : stats.isFile() ? 'file' : 'missing';
    } catch (error) {
      if (isAbsent(error)) return 'missing';
      throw error;
    }
  },
  async head(path) {
    try {
      const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
      try {
        const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0);
        return buffer.toString('utf8', 0, bytesRead);
      } finally {
        await file.close();
      }
    } catch (error) {
      if (isAbsent(error)) return undefined;
      throw error;
    }
  },
};

/** Missing, or below something that is no folder. */
function isAbsent(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
}
