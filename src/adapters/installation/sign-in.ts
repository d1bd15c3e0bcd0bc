import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { ProbeCache } from '../../runtime/process/probe-cache.ts';
import { scrubbedEnv } from '../../runtime/process/scrubbed-env.ts';
import { createProgramSearch, type SearchHost } from '../../runtime/process/search-path.ts';
import type { RunResult } from '../../runtime/process/types.ts';
import type { InstallationReport } from './report.ts';
import { decodeOutput } from './version-text.ts';

/** What a runtime's own status command says of its sign-in; `unknown`: it said nothing that can be relied on. */
export type SignIn = 'ok' | 'missing' | 'unknown';

/** How long an answer is believed, milliseconds. */
export const SIGN_IN_AGE_MS = 60_000;
/** How long "signed in" is believed where nobody may be asked: it seldom ends, and a failed turn says so at once. */
const LAST_WORD_AGE_MS = 24 * 60 * 60_000;
/** No status command takes longer; what does counts as unknown, milliseconds. */
const STATUS_MS = 5_000;
const GRACE_MS = 30;
const KEEP_BYTES = 64 * 1024;

interface Said {
  readonly code: number | null;
  /** Both streams, since Codex 0.171 uses standard error. */
  readonly text: string;
  readonly stdout: string;
}

interface Check {
  readonly args: readonly string[];
  /** The first version that is known to have the command: an older one would take its words for a prompt. */
  readonly since?: readonly [number, number, number];
  /** Whether asking is useless here; the answer is then `unknown`. */
  readonly skip?: (host: SearchHost) => boolean;
  readonly read: (said: Said, host: SearchHost) => SignIn;
}

/**
 * The status commands that send no prompt: `claude auth status` (2.1.197, 2.1.332), `codex login status` (0.171), and
 * `cursor-agent status`, which the reference names for this and nothing else.
 */
const CHECKS: Readonly<Record<string, Check>> = {
  'claude-code': {
    args: ['auth', 'status'],
    since: [2, 1, 197],
    // Before its first start the command would lay its configuration.
    skip: ({ env, home }) => !exists(join(env['CLAUDE_CONFIG_DIR'] || home, '.claude.json')),
    read: ({ stdout }) => readClaude(stdout),
  },
  codex: {
    args: ['login', 'status'],
    since: [0, 171, 0],
    read: ({ text }, host) => {
      const said = readWords(text);
      return said === 'missing' && hasOwnProvider(host) ? 'unknown' : said;
    },
  },
  cursor: { args: ['status'], read: ({ text }) => readWords(text) },
};

function exists(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function readClaude(stdout: string): SignIn {
  try {
    const told: unknown = JSON.parse(stdout);
    const signedIn = typeof told === 'object' && told !== null && 'loggedIn' in told && told.loggedIn;
    return signedIn === true ? 'ok' : signedIn === false ? 'missing' : 'unknown';
  } catch {
    // Words of another version: they say nothing.
    return 'unknown';
  }
}

function readWords(text: string): SignIn {
  if (/\bnot logged in\b/i.test(text)) return 'missing';
  return /\blogged in\b/i.test(text) ? 'ok' : 'unknown';
}

/** Another provider than OpenAI has a key of its own, and `login status` says "Not logged in" all the same. */
function hasOwnProvider({ env, home }: SearchHost): boolean {
  if (env['CODEX_API_KEY'] || env['OPENAI_API_KEY']) return true;
  try {
    const text = readFileSync(join(env['CODEX_HOME'] || join(home, '.codex'), 'config.toml'), 'utf8');
    return /^\s*(?:model_provider|profile|oss_provider)\s*=/m.test(text);
  } catch {
    // No configuration: its own provider.
    return false;
  }
}

export interface SignInRequest {
  /** `remembered`: no process is started (the overview never waits for this, R-41). */
  readonly how: 'ask' | 'remembered';
  /** Ask again instead of believing what is remembered. */
  readonly refresh?: boolean;
  /** Epoch milliseconds; what has not answered by then is unknown. */
  readonly deadlineAt: number;
}

/**
 * Whether the installed runtimes are signed in, by runtime id; absent for those that have no such command. All are asked
 * at once, with one deadline; never a prompt. Never throws.
 */
export async function signInsOf(
  reports: readonly InstallationReport[],
  host: SearchHost,
  request: SignInRequest,
): Promise<ReadonlyMap<string, SignIn>> {
  const answers = reports.map(async (report) => {
    const answer = await signInOf(report, host, request);
    return answer === undefined ? [] : ([[report.runtimeId, answer]] as const);
  });
  return new Map((await Promise.all(answers)).flat());
}

async function signInOf(
  { runtimeId, path, version, versionState }: InstallationReport,
  host: SearchHost,
  { how, refresh, deadlineAt }: SignInRequest,
): Promise<SignIn | undefined> {
  const check = CHECKS[runtimeId];
  if (!check || path === null || versionState !== 'known' || !isSince(version, check.since)) return undefined;
  const key = `sign-in:${path}`;
  const now = host.now();
  const known = await remembered(key, host.cache, now);
  if (known && known.age <= SIGN_IN_AGE_MS && refresh !== true) return known.answer;
  if (how === 'remembered') {
    return known?.answer === 'ok' && known.age <= LAST_WORD_AGE_MS ? 'ok' : undefined;
  }
  const timeoutMs = Math.min(STATUS_MS, deadlineAt - now);
  if (check.skip?.(host) === true || timeoutMs <= 0) return 'unknown';
  const answer = await ask(path, check, host, timeoutMs);
  await host.cache.set(key, { at: host.now(), answer });
  return answer;
}

function isSince(version: string | null, since: Check['since']): boolean {
  if (!since) return true;
  const [, ...found] = /(\d+)\.(\d+)\.(\d+)/.exec(version ?? '') ?? [];
  const differs = since.findIndex((part, index) => Number(found[index]) !== part);
  return found.length === 3 && (differs < 0 || Number(found[differs]) > (since[differs] ?? 0));
}

async function ask(path: string, check: Check, host: SearchHost, timeoutMs: number): Promise<SignIn> {
  const search = createProgramSearch(host);
  const program = search.at(path);
  if (!program) return 'unknown';
  const env = Object.entries(scrubbedEnv(host.env)).filter(([name]) => name.toUpperCase() !== 'PATH');
  const result = await host.run({
    argv: [path, ...check.args],
    env: { ...Object.fromEntries(env), PATH: await search.pathFor(program), NO_COLOR: '1', TERM: 'dumb' },
    cwd: host.home,
    timeoutMs,
    graceMs: GRACE_MS,
    keepBytes: KEEP_BYTES,
  });
  return result.kind === 'exited' ? check.read(saidIn(result, host.platform), host) : 'unknown';
}

function saidIn(result: RunResult & { readonly kind: 'exited' }, platform: NodeJS.Platform): Said {
  const stdout = decodeOutput(result.stdoutBytes, platform);
  return { code: result.code, stdout, text: `${stdout}\n${result.stderr}` };
}

async function remembered(
  key: string,
  cache: ProbeCache,
  now: number,
): Promise<{ readonly answer: SignIn; readonly age: number } | undefined> {
  const stored = await cache.get(key);
  if (typeof stored !== 'object' || stored === null || !('at' in stored) || !('answer' in stored)) return;
  const { at, answer } = stored;
  if (typeof at !== 'number' || at > now) return undefined;
  if (answer !== 'ok' && answer !== 'missing' && answer !== 'unknown') return undefined;
  return { answer, age: now - at };
}
