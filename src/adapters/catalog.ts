import { join, posix, win32 } from 'node:path';
import { connectorHome } from '../runtime/store/home.ts';
import { installCommands } from './install-commands.ts';

/**
 * The runtimes that we know, as data. To add one: an entry here, its install commands in
 * `install-commands.ts`, and an adapter folder. What can be done with a runtime is not said here: a capability is an
 * optional member of its adapter.
 */

type Environment = Readonly<Record<string, string | undefined>>;
type Platform = NodeJS.Platform;

/** A program name to look for, and how to tell the program from a stranger of the same name. */
export interface BinaryName {
  readonly name: string;
  /** The name belongs to somebody else's program unless its real path has this folder. */
  readonly onlyUnder?: string;
  /** Somebody else's program has this folder in its real path. */
  readonly neverUnder?: string;
  /** An editor that opens a window: proves that the product is there, is never started, has no session of ours. */
  readonly editor?: true;
}

/** Where a runtime keeps its files. The first is where the present version writes, others are of older ones. */
export type Homes = (env: Environment, home: string, platform: Platform) => readonly string[];

/** One runtime, or one bridge. */
export interface CatalogEntry {
  /** The id of `targets.md` §1, used everywhere and on the Shadow wire. */
  readonly id: string;
  /** The product's own name; shown to users, never "coding agent". */
  readonly label: string;
  readonly kind: 'openclaw' | 'cli' | 'bridge';
  /** In the order in which they are tried; the first is `command` while none is found. */
  readonly binaries: readonly BinaryName[];
  /**
   * Arguments that print the version and end. One form only: other forms that the existing connector tried
   * (`version`, `-v`) are a prompt or a flag with another meaning to some of these programs.
   */
  readonly versionArguments: readonly string[];
  /** Added to the environment of a version probe, so that it neither updates nor calls home. */
  readonly probeEnvironment: Readonly<Record<string, string>>;
  readonly homes: Homes;
  /** Paths outside the search path where the binary may lie. */
  readonly knownPaths?: (env: Environment, home: string, platform: Platform) => readonly string[];
  readonly helpUrl: string;
  readonly iconId: string;
  /** Names by which a running process of it is seen: its program file, its script, or its own title. */
  readonly executableNames: readonly string[];
  /** True for a runtime that the server doesn't know: it is listed here and left out of the heartbeat. */
  readonly localOnly?: true;
}

const VERSION = ['--version'] as const;

/** `$VARIABLE`, else these folders under the user's home. */
function homeAt(variable: string | null, ...folders: readonly string[]): Homes {
  return (env, home, platform) => {
    const named = variable === null ? undefined : env[variable];
    return named ? [named] : folders.map((folder) => pathOf(platform).join(home, folder));
  };
}

/** Path functions of the platform that is asked about, which isn't always the one we run on. */
function pathOf(platform: Platform): typeof posix {
  return platform === 'win32' ? win32 : posix;
}

const openCodeHomes: Homes = (env, home, platform) => {
  const path = pathOf(platform);
  if (env['OPENCODE_DATA_DIR']) return [env['OPENCODE_DATA_DIR']];
  if (env['XDG_DATA_HOME']) return [path.join(env['XDG_DATA_HOME'], 'opencode')];
  const appData = platform === 'win32' ? env['APPDATA'] : undefined;
  return [
    path.join(home, '.local', 'share', 'opencode'),
    ...(appData ? [path.join(appData, 'opencode')] : []),
  ];
};

const hermesHomes: Homes = (env, home, platform) => {
  if (env['HERMES_HOME']) return [env['HERMES_HOME']];
  const local = platform === 'win32' ? env['LOCALAPPDATA'] : undefined;
  return local ? [win32.join(local, 'hermes')] : [pathOf(platform).join(home, '.hermes')];
};

/**
 * The runtimes in the order of the heartbeat, which is also the order of every list. The nine that the
 * server knows come first; pi follows, local only.
 */
export const CATALOG: readonly CatalogEntry[] = [
  {
    id: 'openclaw',
    label: 'OpenClaw',
    kind: 'openclaw',
    binaries: [{ name: 'openclaw' }],
    versionArguments: VERSION,
    probeEnvironment: { OPENCLAW_NO_RESPAWN: '1' },
    homes: homeAt('OPENCLAW_STATE_DIR', '.openclaw'),
    helpUrl: 'https://docs.openclaw.ai/install/index',
    iconId: 'openclaw',
    executableNames: ['openclaw', 'openclaw-gateway'],
  },
  {
    id: 'hermes',
    label: 'Hermes Agent',
    kind: 'cli',
    binaries: [{ name: 'hermes' }],
    versionArguments: VERSION,
    probeEnvironment: {},
    homes: hermesHomes,
    helpUrl: 'https://hermes-agent.nousresearch.com/docs/getting-started/installation',
    iconId: 'hermes',
    executableNames: ['hermes'],
  },
  {
    id: 'claude-code',
    label: 'Claude Code',
    kind: 'cli',
    binaries: [{ name: 'claude' }],
    versionArguments: VERSION,
    probeEnvironment: { DISABLE_AUTOUPDATER: '1' },
    homes: homeAt('CLAUDE_CONFIG_DIR', '.claude'),
    helpUrl: 'https://code.claude.com/docs/en/installation',
    iconId: 'claude-code',
    executableNames: ['claude'],
  },
  {
    id: 'codex',
    label: 'Codex CLI',
    kind: 'cli',
    binaries: [{ name: 'codex' }],
    versionArguments: VERSION,
    probeEnvironment: {},
    homes: homeAt('CODEX_HOME', '.codex'),
    helpUrl: 'https://help.openai.com/en/articles/11096431-openai-codex-cli-getting-started',
    iconId: 'codex',
    executableNames: ['codex'],
  },
  {
    id: 'opencode',
    label: 'OpenCode',
    kind: 'cli',
    binaries: [{ name: 'opencode' }],
    versionArguments: VERSION,
    probeEnvironment: { OPENCODE_DISABLE_AUTOUPDATE: '1' },
    homes: openCodeHomes,
    helpUrl: 'https://opencli.co/cli/opencode',
    iconId: 'opencode',
    executableNames: ['opencode'],
  },
  {
    id: 'cursor',
    label: 'Cursor CLI',
    kind: 'cli',
    // npm's `cursor-agent` is another author's program. `agent` is Cursor's newer name and far too common to be
    // trusted alone. Bare `cursor` is the editor.
    binaries: [
      { name: 'cursor-agent', neverUnder: 'node_modules/cursor-agent' },
      { name: 'agent', onlyUnder: 'cursor-agent' },
      { name: 'cursor', editor: true },
    ],
    versionArguments: VERSION,
    probeEnvironment: {},
    homes: homeAt(null, '.cursor'),
    helpUrl: 'https://docs.cursor.com/en/cli/installation',
    iconId: 'cursor',
    executableNames: ['cursor-agent'],
  },
  {
    id: 'kimi',
    label: 'Kimi Code',
    kind: 'cli',
    binaries: [{ name: 'kimi' }],
    versionArguments: VERSION,
    probeEnvironment: {},
    homes: homeAt('KIMI_CODE_HOME', '.kimi-code', '.kimi'),
    helpUrl: 'https://www.kimi.com/code/docs/en/',
    iconId: 'kimi',
    executableNames: ['kimi'],
  },
  {
    id: 'copilot',
    label: 'GitHub Copilot CLI',
    kind: 'cli',
    binaries: [{ name: 'copilot' }],
    versionArguments: VERSION,
    probeEnvironment: { COPILOT_AUTO_UPDATE: 'false' },
    homes: homeAt('COPILOT_HOME', '.copilot'),
    helpUrl: 'https://docs.github.com/en/copilot/how-tos/copilot-cli/install-copilot-cli',
    iconId: 'copilot',
    executableNames: ['copilot'],
  },
  {
    id: 'antigravity',
    label: 'Antigravity CLI',
    kind: 'cli',
    binaries: [{ name: 'agy' }, { name: 'antigravity', editor: true }],
    versionArguments: VERSION,
    probeEnvironment: {},
    homes: homeAt(null, '.gemini/antigravity'),
    helpUrl: 'https://www.antigravity.google/product/antigravity-cli',
    iconId: 'antigravity',
    executableNames: ['agy'],
  },
  {
    id: 'pi',
    label: 'pi',
    kind: 'cli',
    binaries: [{ name: 'pi' }],
    versionArguments: VERSION,
    probeEnvironment: { PI_OFFLINE: '1', PI_TELEMETRY: '0' },
    homes: homeAt('PI_CODING_AGENT_DIR', '.pi/agent'),
    helpUrl: 'https://github.com/earendil-works/pi',
    iconId: 'pi',
    executableNames: ['pi'],
    localOnly: true,
  },
];

/** The commit of the cc-connect fork whose folder name is part of its path (`targets.md` §5.1). */
const CC_CONNECT_COMMIT = '398af9c';

/** Bridges over several runtimes; listed apart from the runtimes, because they aren't agents. */
export const BRIDGES: readonly CatalogEntry[] = [
  {
    id: 'cc-connect',
    label: 'cc-connect Bridge',
    kind: 'bridge',
    binaries: [{ name: 'cc-connect' }],
    versionArguments: VERSION,
    probeEnvironment: {},
    homes: homeAt(null, '.cc-connect'),
    knownPaths: (env, home, platform) => {
      if (env['SHADOWOB_CC_CONNECT_BIN']) return [env['SHADOWOB_CC_CONNECT_BIN']];
      const root = env['SHADOWOB_CC_CONNECT_HOME'] ?? join(connectorHome(env, home), 'cc-connect');
      return [join(root, CC_CONNECT_COMMIT, 'bin', platform === 'win32' ? 'cc-connect.exe' : 'cc-connect')];
    },
    helpUrl: 'https://github.com/buggyblues/cc-connect',
    iconId: 'cc-connect',
    executableNames: ['cc-connect'],
  },
];

/** The entry of a runtime or bridge id; undefined for an id that we don't know. */
export function entryOf(id: string): CatalogEntry | undefined {
  return [...CATALOG, ...BRIDGES].find((entry) => entry.id === id);
}

/** The product's name for an id; the id itself when it isn't known. */
export function labelOf(id: string): string {
  return entryOf(id)?.label ?? id;
}

/** Commands that install it on this platform, in the order in which they are tried; empty when there is none. */
export function installCommandsOf(entry: CatalogEntry, platform: Platform): readonly string[] {
  return installCommands(entry.id, platform);
}

/** The same as one shell line (`a || b`), as `runtimes[].installCommand` shows it; null when there is none. */
export function installCommandOf(entry: CatalogEntry, platform: Platform): string | null {
  const commands = installCommandsOf(entry, platform);
  return commands.length === 0 ? null : commands.join(' || ');
}

/** What of a running process decides whose it is. */
interface RunningProgram {
  readonly comm: string;
  readonly argv: readonly string[];
}

/** Programs that run another program's script: then the script's name counts. */
const INTERPRETERS = /^(node|bun|deno|python[\d.]*|sh|bash)$/;

/**
 * Whether a running process is this runtime's: by its own title, by its program file, or by the script that an
 * interpreter runs. Other arguments never count (`vim claude-notes.md`: P2 of the existing connector).
 */
export function isProcessOf(entry: CatalogEntry, program: RunningProgram): boolean {
  const [first, ...rest] = program.argv;
  const named = [program.comm, baseName(first ?? '')];
  if (named.some((name) => entry.executableNames.includes(name))) return true;
  if (!named.some((name) => INTERPRETERS.test(name))) return false;
  const script = rest.find((argument) => !argument.startsWith('-'));
  return script !== undefined && entry.executableNames.includes(baseName(script));
}

function baseName(path: string): string {
  return (path.split(/[\\/]/).at(-1) ?? path).replace(/\.(exe|js|mjs|cjs|py)$/i, '');
}
