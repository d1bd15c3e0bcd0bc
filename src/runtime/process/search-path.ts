import {
  accessSync,
  closeSync,
  constants,
  lstatSync,
  openSync,
  readSync,
  realpathSync,
  type Stats,
  statSync,
} from 'node:fs';
import { posix, win32 } from 'node:path';
import { cachedLoginPath, type LoginShellHost, loginShellPath } from './login-shell.ts';
import type { Environment, Platform } from './types.ts';
import { type FolderContext, wellKnownFolders } from './well-known-folders.ts';

/** What a search touches. */
export interface SearchHost extends LoginShellHost, FolderContext {
  /** The facts about a startable file, null for anything else; absent: the file system is asked. */
  readonly lookAt?: (path: string) => FileFacts | null;
}

/** What is known of a program's file. */
type FileFacts = Pick<Executable, 'realPath' | 'size' | 'mtimeMs'>;

/** A program that can be started. */
export interface Executable {
  /** As it was found: the name under which shims and multi-call programs know what to be. */
  readonly path: string;
  /** All links resolved; what a cache of facts is keyed by, with size and time. */
  readonly realPath: string;
  readonly size: number;
  readonly mtimeMs: number;
  /** Where the search found it. */
  readonly origin: 'inherited' | 'loginShell' | 'wellKnown' | 'given';
}

/** A search over one command's life: folders are read, and the login shell is asked, at most once. */
export interface ProgramSearch {
  /**
   * All programs of this name, the one to use first, each real file once. The user's PATH as we got it decides
   * first, then the login shell's, then the well-known folders, so a user's earlier entry always wins.
   */
  readonly find: (name: string) => Promise<readonly Executable[]>;
  /** A program at a path that is known otherwise; null when it isn't there or can't be started. */
  readonly at: (path: string) => Executable | null;
  /** PATH for a child that starts this program: its own folder and its interpreter's first (R2). */
  readonly pathFor: (executable: Executable) => Promise<string>;
  /** Processes started by this search so far. */
  readonly spawned: () => number;
}

/** PATH entries that every system gives even to services; with nothing else PATH says nothing about the user. */
const BARE = /^(\/usr(\/local)?)?\/s?bin\/?$|^\/(usr\/(local\/)?games|snap\/bin|usr\/libexec)\/?$/;

/** Makes a search. `refresh` asks the login shell again instead of believing the cache. */
export function createProgramSearch(host: SearchHost, refresh = false): ProgramSearch {
  const inherited = inheritedFolders(host.env, host.platform);
  const known = wellKnownFolders(host);
  const isBare = inherited.every((folder) => BARE.test(folder));
  const lookAt = host.lookAt ?? ((path: string) => factsOf(path, host.platform));
  const asked: {
    login?: Promise<readonly string[]>;
    cached?: Promise<readonly string[] | null>;
    spawned: number;
  } = { spawned: 0 };

  const askLogin = (): Promise<readonly string[]> => {
    asked.login ??= loginShellPath(host, refresh).then((answer) => {
      asked.spawned += answer.spawned;
      return answer.folders;
    });
    return asked.login;
  };
  /** The login shell's folders as far as they cost nothing. */
  const loginSoFar = async (): Promise<readonly string[]> => {
    if (isBare || asked.login !== undefined) return askLogin();
    asked.cached ??= refresh ? Promise.resolve(null) : cachedLoginPath(host);
    return (await asked.cached) ?? [];
  };
  const names = (name: string): readonly string[] =>
    host.platform === 'win32' ? windowsExtensions(host.env).map((ext) => name + ext) : [name];
  const search = (name: string, login: readonly string[]): readonly Executable[] => {
    const within = (folders: readonly string[], origin: Executable['origin']): readonly Executable[] =>
      folders.flatMap((folder) =>
        names(name).flatMap((file) => executable(pathOf(host.platform).join(folder, file), origin, lookAt)),
      );
    return distinct([
      ...within(inherited, 'inherited'),
      ...within(login, 'loginShell'),
      ...within(known, 'wellKnown'),
    ]);
  };

  return {
    find: async (name) => {
      const found = search(name, await loginSoFar());
      return found.length > 0 ? found : search(name, await askLogin());
    },
    at: (path) => executable(path, 'given', lookAt)[0] ?? null,
    pathFor: async (program) => {
      const rest = [...inherited, ...(await loginSoFar()), ...known];
      return pathForBinary(program, rest, host.platform);
    },
    spawned: () => asked.spawned,
  };
}

/** The absolute folders of the PATH that we were started with. A relative entry would mean the current folder. */
export function inheritedFolders(env: Environment, platform: Platform): readonly string[] {
  const path = pathOf(platform);
  const value = platform === 'win32' ? windowsPath(env) : env['PATH'];
  const folders = (value ?? '').split(path.delimiter).map((folder) => folder.replace(/^"(.*)"$/, '$1'));
  return [...new Set(folders.filter((folder) => path.isAbsolute(folder)))];
}

/** Windows names are the same in any case, but a JavaScript object's aren't. */
function windowsPath(env: Environment): string | undefined {
  return Object.entries(env).find(([name]) => name.toUpperCase() === 'PATH')?.[1];
}

/**
 * PATH with which a child finds what its binary needs: the binary's own folder, then the folder of its
 * interpreter when it is a script with `#!/usr/bin/env` (R2), then `rest`.
 */
export function pathForBinary(program: Executable, rest: readonly string[], platform: Platform): string {
  const path = pathOf(platform);
  const own = path.dirname(program.path);
  const interpreter = platform === 'win32' ? null : interpreterOf(program.realPath);
  const candidates = [own, ...prefixesOf(program.realPath), ...rest];
  const beside = candidates.find(
    (folder) => interpreter !== null && factsOf(path.join(folder, interpreter), platform) !== null,
  );
  return [...new Set([own, ...(beside === undefined ? [] : [beside]), ...rest])].join(path.delimiter);
}

/** `node` for a script that begins with `#!/usr/bin/env node`; null for everything else. */
function interpreterOf(realPath: string): string | null {
  const line = firstBytes(realPath, 128);
  return /^#!\s*\/usr\/bin\/env\s+(?:-S\s+)?([\w.-]+)/.exec(line)?.[1] ?? null;
}

/** The `bin` of the prefix that an npm package is installed under: `<prefix>/lib/node_modules/x/y.js`. */
function prefixesOf(realPath: string): string[] {
  const prefix = /^(.*)\/lib\/node_modules\//.exec(realPath)?.[1];
  return prefix === undefined ? [] : [`${prefix}/bin`];
}

function firstBytes(path: string, count: number): string {
  const buffer = Buffer.alloc(count);
  try {
    const file = openSync(path, 'r');
    try {
      return buffer.toString('latin1', 0, readSync(file, buffer, 0, count, 0));
    } finally {
      closeSync(file);
    }
  } catch {
    // A program that may be run but not read (mode 0711): then it is no script either.
    return '';
  }
}

function executable(
  path: string,
  origin: Executable['origin'],
  lookAt: (path: string) => FileFacts | null,
): readonly Executable[] {
  const facts = lookAt(path);
  return facts === null ? [] : [{ path, ...facts, origin }];
}

/** Extensions that we can start, in the user's order. A bare `codex` beside `codex.cmd` is npm's sh script. */
function windowsExtensions(env: Environment): readonly string[] {
  const startable = ['.com', '.exe', '.bat', '.cmd'];
  const named = (env['PATHEXT'] ?? '')
    .toLowerCase()
    .split(';')
    .filter((ext) => startable.includes(ext));
  return named.length > 0 ? named : startable;
}

function factsOf(path: string, platform: Platform): FileFacts | null {
  try {
    const stats = statsOf(path, platform);
    if (stats === null || stats.isDirectory()) return null;
    if (platform !== 'win32') {
      if (!stats.isFile()) return null;
      accessSync(path, constants.X_OK);
    }
    return { realPath: realPathOf(path), size: stats.size, mtimeMs: stats.mtimeMs };
  } catch {
    // Not there, a dangling link, a loop of links, or not ours to run: no candidate.
    return null;
  }
}

/** Store apps are links that can be run but not followed; Windows refuses `stat` for them. */
function statsOf(path: string, platform: Platform): Stats | null {
  try {
    return statSync(path);
  } catch (error) {
    if (platform !== 'win32') throw error;
    return lstatSync(path);
  }
}

function realPathOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // The Store's links again: their own path is all there is.
    return path;
  }
}

function distinct(found: readonly Executable[]): readonly Executable[] {
  const seen = new Set<string>();
  return found.filter(({ realPath }) => !seen.has(realPath) && seen.add(realPath));
}

function pathOf(platform: Platform): typeof posix {
  return platform === 'win32' ? win32 : posix;
}
