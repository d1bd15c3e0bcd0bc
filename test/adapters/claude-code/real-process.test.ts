import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AdapterContext } from '../../../src/adapters/adapter.ts';
import { createClaudeCode } from '../../../src/adapters/claude-code/index.ts';
import { RUNTIME_ID } from '../../../src/adapters/claude-code/session.ts';
import { identityFromProc } from '../../../src/runtime/process/identity.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';
import { linesOf, sessionOf } from './recording.ts';

/** A recording laid out in a home of its own, with a real process as the session's owner. */
let home: string;
let owner: ReturnType<typeof Bun.spawn>;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'claude-real-'));
  mkdirSync(join(home, '.claude', 'sessions'), { recursive: true });
  owner = Bun.spawn(['sleep', '300']);
});
afterEach(async () => {
  owner.kill('SIGKILL');
  await owner.exited;
  rmSync(home, { recursive: true, force: true });
});

function layOut(scenario: string, rows: number): string {
  const id = sessionOf(scenario, 'transcript.jsonl');
  const folder = join(home, '.claude', 'projects', '-home-dev-acme-app');
  mkdirSync(folder, { recursive: true });
  const lines = linesOf(scenario, 'transcript.jsonl').slice(0, rows);
  writeFileSync(join(folder, `${id}.jsonl`), `${lines.join('\n')}\n`);
  return id;
}
function says(id: string, more: object): void {
  const procStart = identityFromProc(owner.pid)?.startToken ?? 'none';
  const file = {
    pid: owner.pid,
    sessionId: id,
    procStart,
    version: '2.1.332',
    entrypoint: 'cli',
    kind: 'interactive',
  };
  const content = { ...file, startedAt: Date.now() - 1_000, statusUpdatedAt: Date.now(), ...more };
  writeFileSync(join(home, '.claude', 'sessions', `${owner.pid}.json`), JSON.stringify(content));
}
async function look(id: string): Promise<readonly [string, string]> {
  const log = { debug() {}, warn() {} };
  const context: AdapterContext = { env: {}, home, platform: process.platform, now: () => Date.now(), log };
  const scan = await createClaudeCode().scan(context);
  const registry = createRegistry();
  registry.replace(RUNTIME_ID, scan.sightings, Date.now());
  const session = registry.sessions().find((candidate) => candidate.ref.sessionId === id);
  return session ? [publicState(session.shown.state), session.shown.life] : ['not listed', 'none'];
}

// Elsewhere a start token has another form; the judges of macOS and Windows have tests of their own.
describe.skipIf(process.platform !== 'linux')('a real process owns the session', () => {
  test('i-perm-approve: waiting, then killed at the prompt: stopped', async () => {
    const id = layOut('i-perm-approve', 25);
    says(id, { status: 'waiting', waitingFor: 'permission prompt' });
    expect(await look(id)).toEqual(['waiting_for_approval', 'alive']);
    owner.kill('SIGKILL');
    await owner.exited;
    expect(await look(id)).toEqual(['stopped', 'dead']);
  });

  test('h-signal-sigkill: a tool runs, then kill -9 leaves the live file behind: stopped', async () => {
    const id = layOut('h-signal-sigkill', 99);
    says(id, { status: 'busy', entrypoint: 'sdk-cli' });
    expect(await look(id)).toEqual(['tool_call', 'alive']);
    owner.kill('SIGKILL');
    await owner.exited;
    expect(await look(id)).toEqual(['stopped', 'dead']);
  });

  test('i-simple: the turn had ended: killing the idle terminal keeps the outcome', async () => {
    const id = layOut('i-simple', 99);
    says(id, { status: 'idle' });
    expect(await look(id)).toEqual(['completed', 'alive']);
    owner.kill('SIGKILL');
    await owner.exited;
    expect(await look(id)).toEqual(['completed', 'dead']);
  });

  test('i-ask-user-question: the tool’s name says that it is a question', async () => {
    const scenario = 'i-ask-user-question';
    const asked = linesOf(scenario, 'transcript.jsonl').findIndex((line) =>
      line.includes('"name": "AskUserQuestion"'),
    );
    const id = layOut(scenario, asked + 1);
    says(id, { status: 'waiting', waitingFor: 'permission prompt' });
    expect(await look(id)).toEqual(['blocked', 'alive']);
  });

  test('the start token of another process: its pid was reused', async () => {
    const id = layOut('i-perm-approve', 25);
    says(id, { status: 'busy', procStart: '1' });
    expect(await look(id)).toEqual(['stopped', 'dead']);
  });

  test('an owner that is still there answers, and the rows that come are read', async () => {
    const id = layOut('i-perm-approve', 25);
    says(id, { status: 'waiting', waitingFor: 'permission prompt' });
    expect(await look(id)).toEqual(['waiting_for_approval', 'alive']);
    const rest = linesOf('i-perm-approve', 'transcript.jsonl').slice(25);
    appendFileSync(join(home, '.claude/projects/-home-dev-acme-app', `${id}.jsonl`), `${rest.join('\n')}\n`);
    says(id, { status: 'idle' });
    expect(await look(id)).toEqual(['completed', 'alive']);
  });
});
