import { isAbsolute, relative, resolve } from 'node:path';
import { ConnectorError } from '../runtime/errors.ts';
import { looksActive, needsUser, PUBLIC_STATES, publicState } from '../runtime/session/project.ts';
import type { Session } from '../runtime/session/session.ts';
import { parseSince } from './output/age.ts';
import { nearest } from './suggest.ts';

/** The filters of a listing, checked. */
export interface SessionFilter {
  readonly runtimes: readonly string[] | undefined;
  readonly states: ReadonlySet<string> | undefined;
  /** Epoch milliseconds. */
  readonly since: number | undefined;
  /** Absolute path. */
  readonly dir: string | undefined;
  readonly limit: number | undefined;
  readonly all: boolean;
  readonly redact: boolean;
  readonly opencodeUrl: string | undefined;
}

interface FilterArgs {
  readonly runtime?: string | undefined;
  readonly state?: string | undefined;
  readonly since?: string | undefined;
  readonly dir?: string | undefined;
  readonly limit?: string | undefined;
  readonly all?: boolean | undefined;
  readonly redact?: boolean | undefined;
  readonly 'opencode-url'?: string | undefined;
}

const STATE_GROUPS = ['active', 'waiting'];

/**
 * Checks the filters of a command line.
 *
 * @throws ConnectorError `badValue`, naming the flag and what it takes
 */
export function readFilter(args: FilterArgs, cwd: string, now: number): SessionFilter {
  return {
    runtimes: readRuntimes(args.runtime),
    states: readStates(args.state),
    since: readSince(args.since, now),
    dir: args.dir === undefined ? undefined : resolve(cwd, args.dir),
    limit: readLimit(args.limit),
    all: args.all === true,
    redact: args.redact === true,
    opencodeUrl: args['opencode-url'],
  };
}

function words(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

function readRuntimes(text: string | undefined): readonly string[] | undefined {
  if (text === undefined) return undefined;
  const ids = words(text);
  return ids.length === 0 || ids.includes('all') ? undefined : ids;
}

function readStates(text: string | undefined): ReadonlySet<string> | undefined {
  if (text === undefined) return undefined;
  const known: readonly string[] = [...PUBLIC_STATES, ...STATE_GROUPS];
  const wanted = words(text).map((word) => word.replaceAll('-', '_'));
  const wrong = wanted.find((word) => !known.includes(word));
  if (wrong !== undefined || wanted.length === 0) {
    const hint = nearest(wrong ?? '', known);
    throw new ConnectorError(
      'badValue',
      `--state: there is no state "${wrong ?? ''}"${hint ? `; did you mean "${hint}"?` : ''}`,
      `The states are ${known.join(', ')}.`,
    );
  }
  return new Set(wanted);
}

function readSince(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const since = parseSince(text, now);
  if (since !== undefined) return since;
  throw new ConnectorError(
    'badValue',
    `--since: "${text}" is no time`,
    'Try 30m, 2h, 7d, or a date such as 2026-11-30.',
  );
}

function readLimit(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new ConnectorError(
    'badValue',
    `--limit: "${text}" is no number of sessions`,
    'Try --limit 20, or --all.',
  );
}

/** Whether a session passes; archived sessions pass only with `--all`. */
export function passes(session: Session, filter: SessionFilter): boolean {
  if (!filter.all && session.facts.archived === true) return false;
  if (filter.since !== undefined && (session.facts.lastActivityAt ?? 0) < filter.since) return false;
  if (filter.dir !== undefined && !isBelow(session.facts.workDir, filter.dir)) return false;
  return filter.states === undefined || hasState(session, filter.states);
}

function hasState(session: Session, states: ReadonlySet<string>): boolean {
  const state = publicState(session.shown.state);
  if (states.has(state)) return true;
  if (states.has('waiting') && needsUser(session.shown)) return true;
  return states.has('active') && looksActive(state);
}

/** Path containment by components, as text: no links are resolved (S-206). */
function isBelow(path: string | undefined, folder: string): boolean {
  if (path === undefined) return false;
  const way = relative(folder, path);
  return way === '' || (!way.startsWith('..') && !isAbsolute(way));
}
