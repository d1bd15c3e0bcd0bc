/** What Codex trusts of our hooks, by its own word, and how it is told to (R-23, S-825, T2, T3). */
import { realpathSync } from 'node:fs';
import { type HookTrust, openHookTrust } from '../../adapters/codex/hook-trust.ts';
import type { Certainty, ConsentOutcome, HooksContext } from './integration.ts';
import { whose } from './marker.ts';
import { counted } from './notes.ts';

/** S-825. */
export const TRUST_BY_HAND: readonly string[] = [
  'Codex runs no hook that it was not told to trust, and says nothing about it.',
  'Start codex, enter /hooks, and trust them; the same holds for its desktop app and extension.',
];

/** Where our hooks stand. */
export interface TrustedFile {
  /** Codex's home. */
  readonly root: string;
  readonly path: string;
}

/** Codex is the only authority on its hashes (T3): it says them, and it writes them. */
export async function trustOurs(
  context: HooksContext,
  file: TrustedFile & { readonly command: string },
): Promise<ConsentOutcome> {
  const trust = await openTrust(context, file.root);
  if (typeof trust === 'string') return { kind: 'failed', message: trust, byHand: TRUST_BY_HAND };
  try {
    const listed = await trust.list();
    if (typeof listed === 'string') return { kind: 'failed', message: listed, byHand: TRUST_BY_HAND };
    const ours = listed.hooks.filter((hook) => isOurs(hook, file));
    if (ours.length === 0)
      return {
        kind: 'failed',
        message: `Codex does not list our hooks of ${file.path}`,
        byHand: TRUST_BY_HAND,
      };
    const open = ours.filter((hook) => hook.trust !== 'trusted' && hook.trust !== 'managed');
    const problem = open.length === 0 ? undefined : await trust.trust(open);
    if (problem !== undefined) return { kind: 'failed', message: problem, byHand: TRUST_BY_HAND };
    const after = await trust.list();
    const left =
      typeof after === 'string'
        ? ours
        : after.hooks.filter(
            (hook) => isOurs(hook, file) && hook.trust !== 'trusted' && hook.trust !== 'managed',
          );
    if (left.length > 0)
      return {
        kind: 'failed',
        message: `Codex did not take ${counted(left.length, 'hook')}`,
        byHand: TRUST_BY_HAND,
      };
    return { kind: 'given', message: `Codex trusts all ${ours.length} hooks of ours.` };
  } finally {
    await trust.close();
  }
}

async function openTrust(context: HooksContext, root: string): Promise<HookTrust | string> {
  const [program] = await context.programs('codex');
  if (program === undefined) return 'Codex itself was not found, and only it can say what it trusts';
  return openHookTrust({
    program: program.path,
    env: { ...program.env, CODEX_HOME: root },
    cwd: root,
  });
}

function isOurs(
  hook: { readonly command: string; readonly sourcePath: string },
  { path, command }: TrustedFile & { readonly command: string },
): boolean {
  return hook.command === command && samePath(hook.sourcePath, path);
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Not there: the name itself is all there is to compare.
    return path;
  }
}

/** Codex names files by their real path. */
function samePath(a: string, b: string): boolean {
  return realPath(a) === realPath(b);
}

export interface TrustSeen {
  readonly certainty: Certainty;
  readonly notes: readonly string[];
}

export const NOT_TRUSTED: TrustSeen = { certainty: 'no', notes: [] };

/** What Codex says of all entries of ours in the file; its own words where it warns. */
export async function trustOf(context: HooksContext, file: TrustedFile): Promise<TrustSeen> {
  const trust = await openTrust(context, file.root);
  if (typeof trust === 'string') return { certainty: 'unknown', notes: [`Trust is not known: ${trust}.`] };
  try {
    const listed = await trust.list();
    if (typeof listed === 'string')
      return { certainty: 'unknown', notes: [`Trust is not known: ${listed}.`] };
    const ours = listed.hooks.filter(
      (hook) => whose(hook.command).kind === 'ours' && samePath(hook.sourcePath, file.path),
    );
    const runs = ours.filter(
      (hook) => hook.enabled && (hook.trust === 'trusted' || hook.trust === 'managed'),
    );
    const off = ours.filter((hook) => !hook.enabled).length;
    const notes = [
      ...(ours.length === 0
        ? [
            'Codex does not list them: it may be too old, have `hooks` off in its [features], or reject the file.',
          ]
        : []),
      ...listed.warnings.map((words) => `Codex says: ${words}`),
      ...(off > 0
        ? [`${counted(off, 'hook')} of ours ${off === 1 ? 'is' : 'are'} switched off in Codex.`]
        : []),
      ...(runs.length < ours.length ? TRUST_BY_HAND : []),
    ];
    const certainty = runs.length === 0 ? 'no' : runs.length < ours.length ? 'partly' : 'yes';
    return { certainty, notes };
  } finally {
    await trust.close();
  }
}
