import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AdapterContext } from '../../../src/adapters/adapter.ts';
import { opencode } from '../../../src/adapters/opencode/index.ts';
import type { Extension } from '../../../src/install/extensions/generate.ts';
import { startResident } from '../../../src/runtime/daemon/feeds/resident.ts';
import type { RuntimeFeed } from '../../../src/runtime/feed.ts';
import { systemHost } from '../../../src/runtime/process/spawn.ts';

/** A folder of its own, gone after `run`. */
export async function inFolder<T>(run: (folder: string) => Promise<T> | T): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'ext-'));
  try {
    return await run(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A real daemon on a real socket, that looks at no runtime of this computer. */
export async function startDaemonIn(home: string) {
  const reads: RuntimeFeed<AdapterContext> = {
    id: 'opencode',
    scan: async () => ({ instances: [], sightings: [], problems: [] }),
    ...(opencode.inside ? { inside: opencode.inside } : {}),
  };
  const resident = await startResident<AdapterContext>({
    socketPath: join(home, 'daemon.sock'),
    home,
    build: { version: 'test' },
    env: {},
    host: systemHost,
    feeds: [reads],
    context: {
      env: {},
      home,
      platform: process.platform,
      now: Date.now,
      log: { debug: () => {}, warn: () => {} },
    },
    builders: { list: () => ({}), why: () => ({}) },
  });
  await resident.ready;
  return resident;
}

/** Loads the generated text as the program would. */
export async function load(folder: string, extension: Extension, socketPath: string): Promise<unknown> {
  const path = join(folder, `${crypto.randomUUID()}-${extension.fileName}`);
  writeFileSync(path, extension.text(socketPath, process.platform));
  return import(path);
}

type Handler = (event: unknown, ctx: unknown) => unknown;

/** pi's extension interface, as far as ours uses it (1.6.0). */
export function fakePi(id: string) {
  const handlers = new Map<string, Handler>();
  const sent: { text: string; options: unknown }[] = [];
  const state = { idle: true, pending: false, aborts: 0 };
  const ctx = {
    cwd: '/work/app',
    model: { id: 'model-1' },
    sessionManager: { getSessionId: () => id, getSessionFile: () => `/sessions/${id}.jsonl` },
    isIdle: () => state.idle,
    hasPendingMessages: () => state.pending,
    abort: () => {
      state.aborts += 1;
    },
  };
  return {
    state,
    sent,
    api: {
      on: (name: string, handler: Handler) => void handlers.set(name, handler),
      sendUserMessage: (text: string, options: unknown) => void sent.push({ text, options }),
    },
    fire: (name: string, event: object = {}): unknown => handlers.get(name)?.(event, ctx),
  };
}

export type FakePi = ReturnType<typeof fakePi>;

/** Loads our extension into a fake pi. */
export async function loadInto(
  folder: string,
  extension: Extension,
  socketPath: string,
  pi: FakePi,
): Promise<void> {
  const module = (await load(folder, extension, socketPath)) as { default: (api: unknown) => void };
  module.default(pi.api);
}

/** Waits for a condition; the patience says nothing of how long anything should take. */
export async function until<T>(
  what: string,
  probe: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  for (let round = 0; round < 400; round += 1) {
    const found = await probe();
    if (found !== undefined && found !== false) return found;
    await Bun.sleep(20);
  }
  throw new Error(`waited in vain for ${what}`);
}
