import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { ProbeCache } from './probe-cache.ts';
import { scrubbedEnv } from './scrubbed-env.ts';
import type { CommandRunner, Environment, Platform } from './types.ts';

/** How long all attempts together may take; start-up files that hang or ask something get no more. */
export const LOGIN_SHELL_MS = 1_800;
/** The share of that for the interactive attempt; the plain one gets the rest. */
const INTERACTIVE_MS = 1_100;
/** A failure is remembered for this long, so that a hanging start-up file isn't met at every command. */
const FAILURE_AGE_MS = 10 * 60_000;
/** An answer may depend on files that the start-up files read, which we don't know. */
const ANSWER_AGE_MS = 24 * 60 * 60_000;

/** What a login-shell look-up needs. */
export interface LoginShellHost {
  readonly platform: Platform;
  readonly env: Environment;
  readonly home: string;
  readonly run: CommandRunner;
  readonly cache: ProbeCache;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** The folders of a login shell's PATH, and what it cost to learn them. */
export interface LoginPath {
  readonly folders: readonly string[];
  readonly spawned: number;
}

const NOTHING: LoginPath = { folders: [], spawned: 0 };

/**
 * PATH as the user's own shell sets it at login (R1). Read-only for the user's files, but start-up files do run:
 * so only when something isn't found otherwise, once per change of shell or start-up files, in a group of its
 * own, with stdin closed, for at most 1.8 s. Never on Windows, where the registry's PATH reaches every program.
 * `SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL=1` turns it off. No answer is an empty list.
 */
export async function loginShellPath(host: LoginShellHost, refresh = false): Promise<LoginPath> {
  if (host.platform === 'win32' || host.env['SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL'] === '1') return NOTHING;
  const shell = shellOf(host);
  const key = `login-path:${fingerprint(shell, host)}`;
  const known = refresh ? null : remembered(await host.cache.get(key), host.now());
  if (known !== null) return { folders: known, spawned: 0 };
  const { folders, spawned } = await ask(shell, host);
  await host.cache.set(key, { at: host.now(), folders });
  return { folders, spawned };
}

/** What the cache already knows, without starting anything; null when it knows nothing. */
export async function cachedLoginPath(host: LoginShellHost): Promise<readonly string[] | null> {
  if (host.platform === 'win32' || host.env['SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL'] === '1') return null;
  return remembered(await host.cache.get(`login-path:${fingerprint(shellOf(host), host)}`), host.now());
}

function shellOf(host: LoginShellHost): string {
  const named = host.env['SHELL'];
  if (named && isAbsolute(named)) return named;
  return host.platform === 'darwin' ? '/bin/zsh' : '/bin/bash';
}

/** Start-up files whose change makes an answer old. */
const STARTUP_FILES = [
  '.profile',
  '.bash_profile',
  '.bash_login',
  '.bashrc',
  '.zshenv',
  '.zprofile',
  '.zshrc',
  '.zlogin',
  '.config/fish/config.fish',
  '.config/fish/fish_variables',
  '.config/fish/conf.d',
] as const;
const SYSTEM_FILES = [
  '/etc/profile',
  '/etc/profile.d',
  '/etc/paths',
  '/etc/paths.d',
  '/etc/zprofile',
] as const;

function fingerprint(shell: string, host: LoginShellHost): string {
  const zdotdir = host.env['ZDOTDIR'];
  const files = [
    ...STARTUP_FILES.map((name) => join(host.home, name)),
    ...(zdotdir ? ['.zshenv', '.zprofile', '.zshrc'].map((name) => join(zdotdir, name)) : []),
    ...SYSTEM_FILES,
  ];
  const facts = [shell, host.home, ...[shell, ...files].map((path) => `${path}@${changeTime(path)}`)];
  return Bun.hash(facts.join('\n')).toString(16);
}

function changeTime(path: string): number {
  try {
    return statSync(path).mtimeMs;
  } catch {
    // Most of these files don't exist for most users; that is a state like any other.
    return 0;
  }
}

function remembered(value: unknown, now: number): readonly string[] | null {
  if (typeof value !== 'object' || value === null) return null;
  const at: unknown = Reflect.get(value, 'at');
  const folders: unknown = Reflect.get(value, 'folders');
  if (typeof at !== 'number' || !Array.isArray(folders)) return null;
  const age = now - at;
  // A clock that was set back must not keep an answer for ever.
  if (age < 0 || age > (folders.length === 0 ? FAILURE_AGE_MS : ANSWER_AGE_MS)) return null;
  return folders.filter((folder): folder is string => typeof folder === 'string' && isAbsolute(folder));
}

async function ask(shell: string, host: LoginShellHost): Promise<LoginPath> {
  // Most people set PATH in the file for interactive shells; the plain form is for those in which that one hangs.
  const interactive = await attempt(shell, '-ilc', INTERACTIVE_MS, host);
  if (interactive.length > 0) return { folders: interactive, spawned: 1 };
  return { folders: await attempt(shell, '-lc', LOGIN_SHELL_MS - INTERACTIVE_MS, host), spawned: 2 };
}

async function attempt(
  shell: string,
  flags: string,
  timeoutMs: number,
  host: LoginShellHost,
): Promise<string[]> {
  // Start-up files print greetings; a mark that they can't know tells ours from theirs.
  const mark = `path-${randomBytes(8).toString('hex')}`;
  const result = await host.run({
    // `printenv`, because only an exported PATH has the same form in every shell, fish included.
    argv: [shell, flags, `echo; echo ${mark}; printenv PATH; echo ${mark}`],
    env: { ...scrubbedEnv(host.env), HOME: host.home, SHADOWOB_CONNECTOR_SKIP_LOGIN_SHELL: '1' },
    timeoutMs,
    graceMs: 50,
    keep: 'tail',
    keepBytes: 256 * 1024,
  });
  if (result.kind === 'failedToStart') return [];
  return foldersBetween(result.stdout, mark);
}

/** The PATH between two marks; an answer of a shell that then failed or hung in its logout file counts too. */
function foldersBetween(text: string, mark: string): string[] {
  const path = text.split(`\n${mark}`)[1]?.trim();
  if (path === undefined || text.split(`\n${mark}`).length < 3) return [];
  return [...new Set(path.split(':').filter((folder) => isAbsolute(folder)))];
}
