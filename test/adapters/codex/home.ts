import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AdapterContext } from '../../../src/adapters/adapter.ts';
import type { CodexHost } from '../../../src/adapters/codex/host.ts';
import { createCodex } from '../../../src/adapters/codex/index.ts';
import type { FeedScan, ScanOptions } from '../../../src/runtime/feed.ts';
import { run } from '../../../src/runtime/process/spawn.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';
import type { Session } from '../../../src/runtime/session/session.ts';

/** Time of the first record in the made-up rollouts below. */
export const T0 = Date.parse('2026-11-30T12:00:00.000Z');
export const ID = '01a22e12-e42f-7351-a505-699bd4d75dd8';
export const OTHER_ID = '01a22e13-63b3-7d80-a6aa-bd3a108d659d';

type Json = Record<string, unknown>;

/** Lines of a rollout in the paginated format; each call of a method is one record, 10 ms after the last. */
export class Lines {
  readonly lines: string[] = [];
  #at: number;
  #ordinal = 0;
  #turn = 0;

  constructor(at = T0) {
    this.#at = at;
  }

  add(type: string, payload: Json, frame: Json = {}): this {
    const record = {
      timestamp: new Date(this.#at).toISOString(),
      ordinal: this.#ordinal,
      type,
      payload,
      ...frame,
    };
    this.lines.push(JSON.stringify(record));
    this.#at += 10;
    this.#ordinal += 1;
    return this;
  }

  meta(id = ID, more: Json = {}): this {
    return this.add('session_meta', {
      id,
      session_id: id,
      timestamp: new Date(this.#at).toISOString(),
      cwd: '/home/dev/acme-app',
      originator: 'codex-tui',
      cli_version: '0.171.0',
      source: 'vscode',
      history_mode: 'paginated',
      ...more,
    });
  }

  started(): this {
    this.#turn += 1;
    return this.event('task_started', {
      turn_id: `turn-${this.#turn}`,
      started_at: Math.floor(this.#at / 1000),
    });
  }

  prompt(text: string): this {
    return this.item({ type: 'UserMessage', content: [{ type: 'text', text }] });
  }

  said(text: string): this {
    return this.item({ type: 'AgentMessage', content: [{ type: 'Text', text }] });
  }

  call(name: string, args: Json, callId = 'call-1'): this {
    return this.add('response_item', {
      type: 'function_call',
      name,
      arguments: JSON.stringify(args),
      call_id: callId,
    });
  }

  output(callId = 'call-1'): this {
    return this.add('response_item', { type: 'function_call_output', call_id: callId, output: 'ok' });
  }

  complete(more: Json = {}): this {
    return this.event('task_complete', {
      turn_id: `turn-${this.#turn}`,
      last_agent_message: 'Done.',
      started_at: Math.floor(this.#at / 1000),
      ...more,
    });
  }

  aborted(turnId = `turn-${this.#turn}`): this {
    return this.event('turn_aborted', { turn_id: turnId, reason: 'interrupted', started_at: 1 });
  }

  context(model: string, cwd: string): this {
    return this.add('turn_context', { model, cwd });
  }

  item(item: Json): this {
    return this.event('item_completed', { turn_id: `turn-${this.#turn}`, item });
  }

  event(type: string, payload: Json): this {
    return this.add('event_msg', { type, ...payload });
  }

  get text(): string {
    return this.lines.map((line) => `${line}\n`).join('');
  }
}

/** A rollout of one finished turn. */
export function finished(prompt: string, id = ID): Lines {
  return new Lines()
    .meta(id)
    .started()
    .context('gpt-5.5', '/home/dev/acme-app')
    .prompt(prompt)
    .said('Yes.')
    .complete();
}

/** A home folder of its own, with nothing of this machine in it. Close it after the test. */
export class TestHome {
  readonly folder = mkdtempSync(join(tmpdir(), 'codex-home-'));
  readonly root = join(this.folder, '.codex');
  now = T0 + 60_000;

  constructor() {
    mkdirSync(join(this.root, 'sessions'), { recursive: true });
    mkdirSync(join(this.folder, 'proc'));
    this.procLocks('');
  }

  close(): void {
    chmodSync(this.root, 0o755);
    rmSync(this.folder, { recursive: true, force: true });
  }

  path(name: string): string {
    return join(this.root, name);
  }

  write(name: string, content: string | Uint8Array): string {
    const path = this.path(name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, content);
    return path;
  }

  rollout(text: string | Lines, id = ID, day = '2026/11/30', segment = ''): string {
    const name = `rollout-${day.replaceAll('/', '-')}T12-00-00-${id}${segment ? `_${segment}` : ''}.jsonl`;
    return this.write(`sessions/${day}/${name}`, typeof text === 'string' ? text : text.text);
  }

  procLocks(text: string): void {
    writeFileSync(join(this.folder, 'proc', 'locks'), text);
  }

  get host(): CodexHost {
    return {
      platform: 'linux',
      procRoot: join(this.folder, 'proc'),
      kill: () => {},
      run,
      now: () => this.now,
    };
  }

  context(more: Partial<AdapterContext> = {}): AdapterContext {
    return {
      env: {},
      home: this.folder,
      platform: 'linux',
      now: () => this.now,
      log: { debug() {}, warn() {} },
      ...more,
    };
  }

  async scan(more: Partial<AdapterContext> = {}, options: ScanOptions = {}): Promise<FeedScan> {
    return createCodex(this.host).scan(this.context(more), options);
  }

  async sessions(more: Partial<AdapterContext> = {}): Promise<readonly Session[]> {
    return sessionsOf(await this.scan(more), this.now);
  }

  async one(more: Partial<AdapterContext> = {}): Promise<Session> {
    const [session, ...rest] = await this.sessions(more);
    if (!session || rest.length > 0)
      throw new Error(`expected one session, found ${rest.length + (session ? 1 : 0)}`);
    return session;
  }
}

export function sessionsOf(scan: FeedScan, now: number): readonly Session[] {
  const registry = createRegistry();
  registry.replace('codex', scan.sightings, now);
  return registry.sessions();
}

export function stateOf(session: Session): string {
  return publicState(session.shown.state);
}

/** Runs a test in a home of its own. */
export async function inHome<T>(use: (home: TestHome) => Promise<T>): Promise<T> {
  const home = new TestHome();
  try {
    return await use(home);
  } finally {
    home.close();
  }
}
