import { createLineSplitter } from '../../runtime/control/stream-lines.ts';
import { CONTROL } from '../../runtime/limits.ts';
import { type RunningChild, start } from '../../runtime/process/spawn.ts';
import { oneLine } from '../../runtime/session/text.ts';
import { VERSION } from '../../version.ts';
import { asFields, type Fields, listOf, numberOf, objectOf, parseFields, textOf } from './fields.ts';

/** One hook as Codex itself lists it (`hooks/list`, 0.171). */
export interface ListedHook {
  /** `<file>:<event>:<group>:<handler>`: what its trust is kept under. */
  readonly key: string;
  readonly command: string;
  readonly sourcePath: string;
  readonly enabled: boolean;
  /** Codex's word: `untrusted`, `trusted`, `modified`, `managed`. */
  readonly trust: string;
  /** Codex's own hash of what it would run (T3: nobody else computes it). */
  readonly hash: string;
}

export interface HookListing {
  readonly hooks: readonly ListedHook[];
  /** What Codex says in every session about the files, in its own words: a file that it rejects, a limit that it cut. */
  readonly warnings: readonly string[];
}

/** What Codex trusts, asked of an app-server of ours on stdio, which ends with {@link HookTrust.close}. */
export interface HookTrust {
  /** All hooks of the user's own files; a sentence where it did not answer. */
  list(): Promise<HookListing | string>;
  /** Has Codex write that these are trusted as they are now (R-23); a sentence where it did not. */
  trust(hooks: readonly ListedHook[]): Promise<string | undefined>;
  close(): Promise<void>;
}

export interface HookTrustOptions {
  readonly program: string;
  /** With `CODEX_HOME`. */
  readonly env: Readonly<Record<string, string>>;
  /** A folder that is there and is no project of the user's. */
  readonly cwd: string;
}

type Call = (method: string, params: Fields) => Promise<Fields | string>;

/** Starts the app-server and introduces us. A sentence where that failed; nothing runs then. */
export async function openHookTrust(options: HookTrustOptions): Promise<HookTrust | string> {
  const child = start({ argv: [options.program, 'app-server'], env: options.env, cwd: options.cwd });
  if (child.kind !== 'started') return `Codex could not be started (${child.reason})`;
  const call = conversation(child);
  const hello = await call('initialize', {
    clientInfo: { name: 'shadowob-connector', title: 'Shadow Connector', version: VERSION },
    capabilities: { experimentalApi: false, requestAttestation: false },
  });
  if (typeof hello === 'string') {
    await child.end(CONTROL.ackMs);
    return hello;
  }
  await child.write('{"method":"initialized"}\n');
  return {
    async list() {
      const answer = await call('hooks/list', { cwds: [options.cwd] });
      if (typeof answer === 'string') return answer;
      return { hooks: hooksOf(answer), warnings: warningsOf(answer) };
    },
    async trust(hooks) {
      const value = Object.fromEntries(hooks.map(({ key, hash }) => [key, { trusted_hash: hash }]));
      const edits = [{ keyPath: 'hooks.state', value, mergeStrategy: 'upsert' }];
      const answer = await call('config/batchWrite', { edits, reloadUserConfig: true });
      return typeof answer === 'string' ? answer : undefined;
    },
    async close() {
      child.closeInput();
      await Promise.race([child.exited, Bun.sleep(CONTROL.ackMs)]);
      await child.end(CONTROL.ackMs);
    },
  };
}

/** Requests by id over lines; what the server says besides is not for us. Nothing is thrown. */
function conversation(child: RunningChild): Call {
  const waiting = new Map<number, (answer: Fields | string) => void>();
  const counter = { next: 1 };
  const settleAll = (words: string) => {
    for (const settle of [...waiting.values()]) settle(words);
  };
  void readLines(child, (line) => deliver(line, waiting)).then(() => settleAll(lastWords(child)));
  return async (method, params) => {
    const id = counter.next;
    counter.next += 1;
    const { promise, resolve } = Promise.withResolvers<Fields | string>();
    const timer = setTimeout(() => resolve(`Codex did not answer ${method}`), CONTROL.hostStartMs);
    waiting.set(id, resolve);
    const written = await child.write(`${JSON.stringify({ id, method, params })}\n`);
    if (!written) resolve(lastWords(child));
    const answer = await promise;
    clearTimeout(timer);
    waiting.delete(id);
    return answer;
  };
}

function lastWords(child: RunningChild): string {
  const words = Bun.stripANSI(child.stderrTail()).trim().split('\n').at(-1);
  return `Codex has ended${words ? `: ${words}` : ''}`;
}

async function readLines(child: RunningChild, take: (line: string) => void): Promise<void> {
  const lines = createLineSplitter();
  try {
    for await (const chunk of child.stdout) for (const line of lines.push(chunk)) take(line);
  } catch {
    // The pipe broke: whoever waits is told that it has ended.
  }
}

function deliver(line: string, waiting: ReadonlyMap<number, (answer: Fields | string) => void>): void {
  const message = parseFields(line);
  const settle = message?.['method'] === undefined ? waiting.get(numberOf(message, 'id') ?? -1) : undefined;
  if (message === undefined || settle === undefined) return;
  const words = textOf(objectOf(message, 'error'), 'message');
  settle(objectOf(message, 'result') ?? (words === undefined ? 'Codex refused' : `Codex refused: ${words}`));
}

/** What lacks a field is no hook that we could speak of. */
function hooksOf(answer: Fields): readonly ListedHook[] {
  return listOf(answer, 'data').flatMap((folder) =>
    listOf(asFields(folder), 'hooks').flatMap((one): readonly ListedHook[] => {
      const hook = asFields(one);
      const key = textOf(hook, 'key');
      const sourcePath = textOf(hook, 'sourcePath');
      const hash = textOf(hook, 'currentHash');
      const trust = textOf(hook, 'trustStatus');
      if (!key || !sourcePath || !hash || !trust) return [];
      const command = textOf(hook, 'command') ?? '';
      return [{ key, command, sourcePath, enabled: hook?.['enabled'] !== false, trust, hash }];
    }),
  );
}

function warningsOf(answer: Fields): readonly string[] {
  return listOf(answer, 'data').flatMap((folder) =>
    [...listOf(asFields(folder), 'warnings'), ...listOf(asFields(folder), 'errors')].flatMap((one) => {
      const words = typeof one === 'string' ? one : textOf(asFields(one), 'message');
      return words ? [oneLine(words)] : [];
    }),
  );
}
