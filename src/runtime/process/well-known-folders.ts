import { readdirSync } from 'node:fs';
import { posix, win32 } from 'node:path';
import type { Environment, Platform } from './types.ts';

/** What decides where programs are installed. */
export interface FolderContext {
  readonly platform: Platform;
  readonly env: Environment;
  /** The user's home folder. */
  readonly home: string;
  /** Our own home, below which we install Node and packages. */
  readonly connectorHome: string;
}

/**
 * Folders in which installers put programs, in the order in which they are searched: the user's own before the
 * system's, version managers newest version first. They stand in for the PATH that a service manager or the
 * desktop doesn't give us (R1, R5). Folders that don't exist are named too, except inside version managers.
 *
 * WSL is another computer (W8): from Windows its folders aren't searched, and from inside it Windows' are only
 * seen as far as PATH names them.
 */
export function wellKnownFolders(context: FolderContext): readonly string[] {
  const folders = context.platform === 'win32' ? windowsFolders(context) : posixFolders(context);
  return [...new Set(folders.filter((folder): folder is string => folder !== undefined))];
}

function posixFolders({ platform, env, home, connectorHome }: FolderContext): (string | undefined)[] {
  const at = (...parts: string[]): string => posix.join(home, ...parts);
  const data = env['XDG_DATA_HOME'] || at('.local', 'share');
  return [
    at('.local', 'bin'),
    at('bin'),
    // The runtimes' own installers.
    at('.claude', 'local'),
    at('.opencode', 'bin'),
    at('.kimi-code', 'bin'),
    at('.kimi', 'bin'),
    at('.openclaw', 'bin'),
    at('.hermes', 'bin'),
    at('.antigravity', 'bin'),
    ...ours(connectorHome, posix.join, 'bin'),
    // Version managers. Shims ask the manager which version is wanted, so they come before its versions.
    ...below(env['VOLTA_HOME'] || at('.volta'), 'bin'),
    ...below(env['ASDF_DATA_DIR'] || at('.asdf'), 'shims'),
    ...below(env['MISE_DATA_DIR'] || posix.join(data, 'mise'), 'shims'),
    at('.nodenv', 'shims'),
    ...below(env['FNM_MULTISHELL_PATH'], 'bin'),
    ...nodeVersionFolders({ env, home, platform }),
    ...below(env['N_PREFIX'], 'bin'),
    // Package managers.
    ...below(env['BUN_INSTALL'] || at('.bun'), 'bin'),
    ...below(env['DENO_INSTALL'] || at('.deno'), 'bin'),
    ...below(env['CARGO_HOME'] || at('.cargo'), 'bin'),
    ...below(env['NPM_CONFIG_PREFIX'] || env['npm_config_prefix'], 'bin'),
    at('.npm-global', 'bin'),
    at('.npm-packages', 'bin'),
    at('.npm', 'bin'),
    ...pnpmFolders(env, platform === 'darwin' ? at('Library', 'pnpm') : posix.join(data, 'pnpm')),
    at('.yarn', 'bin'),
    at('.config', 'yarn', 'global', 'node_modules', '.bin'),
    at('go', 'bin'),
    at('.nix-profile', 'bin'),
    // The system's.
    ...below(env['HOMEBREW_PREFIX'], 'bin'),
    '/opt/homebrew/bin',
    '/opt/homebrew/sbin',
    '/usr/local/bin',
    '/usr/local/sbin',
    ...(platform === 'darwin'
      ? ['/opt/local/bin']
      : [
          '/home/linuxbrew/.linuxbrew/bin',
          at('.linuxbrew', 'bin'),
          '/snap/bin',
          '/run/current-system/sw/bin',
        ]),
    '/nix/var/nix/profiles/default/bin',
    '/usr/bin',
    '/bin',
    '/usr/sbin',
    '/sbin',
  ];
}

/** `bin` of every Node version that nvm or fnm keeps, newest first; nvm's present choice before all. */
function nodeVersionFolders({
  env,
  home,
  platform,
}: Pick<FolderContext, 'env' | 'home' | 'platform'>): string[] {
  const nvm = env['NVM_DIR'] || posix.join(home, '.nvm');
  const data = env['XDG_DATA_HOME'] || posix.join(home, '.local', 'share');
  const fnmRoots = env['FNM_DIR']
    ? [env['FNM_DIR']]
    : [
        posix.join(data, 'fnm'),
        posix.join(home, '.fnm'),
        ...(platform === 'darwin' ? [posix.join(home, 'Library', 'Application Support', 'fnm')] : []),
      ];
  return [
    ...(env['NVM_BIN'] ? [env['NVM_BIN']] : []),
    ...newestFirst(posix.join(nvm, 'versions', 'node')).map((version) => posix.join(version, 'bin')),
    ...fnmRoots.flatMap((root) => [
      posix.join(root, 'aliases', 'default', 'bin'),
      ...newestFirst(posix.join(root, 'node-versions')).map((version) =>
        posix.join(version, 'installation', 'bin'),
      ),
    ]),
  ];
}

function windowsFolders({ env, home, connectorHome }: FolderContext): (string | undefined)[] {
  const profile = env['USERPROFILE'] || home;
  const at = (...parts: string[]): string => win32.join(profile, ...parts);
  const roaming = env['APPDATA'] || at('AppData', 'Roaming');
  const local = env['LOCALAPPDATA'] || at('AppData', 'Local');
  const winget = win32.join(local, 'Microsoft', 'WinGet');
  return [
    win32.join(roaming, 'npm'),
    at('.local', 'bin'),
    win32.join(local, 'agy', 'bin'),
    win32.join(local, 'hermes', 'bin'),
    at('.claude', 'local'),
    at('.opencode', 'bin'),
    at('.kimi-code', 'bin'),
    at('.kimi', 'bin'),
    ...ours(connectorHome, win32.join, ''),
    win32.join(winget, 'Links'),
    win32.join(local, 'Microsoft', 'WindowsApps'),
    win32.join(local, 'Programs'),
    ...childrenOf(win32.join(winget, 'Packages'), win32.join),
    win32.join(env['SCOOP'] || at('scoop'), 'shims'),
    win32.join(env['ProgramData'] || 'C:\\ProgramData', 'chocolatey', 'bin'),
    win32.join(env['VOLTA_HOME'] || win32.join(local, 'Volta'), 'bin'),
    env['NVM_SYMLINK'] || undefined,
    env['FNM_MULTISHELL_PATH'] || undefined,
    win32.join(env['BUN_INSTALL'] || at('.bun'), 'bin'),
    win32.join(env['DENO_INSTALL'] || at('.deno'), 'bin'),
    win32.join(env['CARGO_HOME'] || at('.cargo'), 'bin'),
    ...pnpmFolders(env, win32.join(local, 'pnpm')),
    win32.join(env['ProgramFiles'] || 'C:\\Program Files', 'nodejs'),
  ];
}

/** The packages and the Node that we install ourselves (`targets.md` §7); npm on Windows knows no `bin` folder. */
function ours(connectorHome: string, join: typeof posix.join, bin: string): string[] {
  const managed = newestFirst(join(connectorHome, 'node')).map((version) => join(version, bin));
  return [join(connectorHome, 'node-global', bin), ...managed];
}

function pnpmFolders(env: Environment, fallback: string): string[] {
  return [env['PNPM_HOME'] || fallback];
}

function below(root: string | undefined, folder: string): string[] {
  return root ? [posix.join(root, folder)] : [];
}

/** Folders named after a version, highest first; anything else in there is left out. */
function newestFirst(root: string): string[] {
  return namesIn(root)
    .filter((name) => /^v?\d+\./.test(name))
    .sort((a, b) => compareVersions(b, a))
    .map((name) => posix.join(root, name));
}

/** Orders `v9.1.0` below `v22.0.0`, and a pre-release below its release. */
export function compareVersions(a: string, b: string): number {
  const numbers = (text: string): number[] =>
    (text.replace(/^v/, '').split(/[-+]/)[0] ?? '').split('.').map(Number);
  const [left, right] = [numbers(a), numbers(b)];
  for (const index of [0, 1, 2]) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return Number(b.includes('-')) - Number(a.includes('-'));
}

function childrenOf(root: string, join: typeof posix.join): string[] {
  return namesIn(root).map((name) => join(root, name));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    // This manager isn't installed here.
    return [];
  }
}
