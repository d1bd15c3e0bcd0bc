import { describe, expect, test } from 'bun:test';
import { chmodSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { compiledBinary } from '../helpers/binary.ts';
import { bareEnvironment, cli, temporaryHome } from '../helpers/cli.ts';
import { layClaude, layCodex, write } from '../helpers/recorded-home.ts';

/** The existing connector's fields and their types; `?` may be null, `*` may be absent (`cli-surface.md` §4, §5). */
const RUNTIME = {
  id: 'string',
  label: 'string',
  kind: 'string',
  status: 'string',
  version: 'string?',
  command: 'string',
  iconId: 'string?',
  installCommand: 'string?',
  installCommands: 'array',
  helpUrl: 'string?',
  detectedAt: 'string',
};
const INSTANCE = {
  runtimeId: 'string',
  instanceId: 'string',
  label: 'string',
  status: 'string',
  capabilities: 'array',
};
const SESSION = {
  runtimeId: 'string',
  instanceId: 'string',
  sessionId: 'string',
  title: 'string?',
  workDir: 'string?',
  state: 'string',
  petReaction: 'string',
  petActivity: 'object*',
  model: 'string?',
  lastActivityAt: 'string?',
  startedAt: 'string?',
  source: 'string',
  native: 'object*',
};

function misfits(shape: Readonly<Record<string, string>>, value: Record<string, unknown>): string[] {
  return Object.entries(shape).flatMap(([key, kind]) => {
    const one = value[key];
    if (one === undefined) return kind.endsWith('*') ? [] : [`${key} is missing`];
    if (one === null) return kind.endsWith('?') ? [] : [`${key} is null`];
    const type = Array.isArray(one) ? 'array' : typeof one;
    return type === kind.replace(/[?*]$/, '') ? [] : [`${key} is ${type}`];
  });
}

describe('what reads the existing connector reads ours', () => {
  test('runtime-scan: nine runtimes in the catalog’s order, pi as the tenth, every field', async () => {
    using home = temporaryHome();
    chmodSync(write(home.path, 'bin/codex', '#!/bin/sh\necho "codex-cli 0.171.0"\n'), 0o755);
    const env = { PATH: `${join(home.path, 'bin')}:/usr/bin:/bin` };
    const result = await cli(['runtime-scan', '--json'], { home: home.path, env });
    expect([result.code, result.stderr]).toEqual([0, '']);
    const { runtimes, bridges, runtimeSessions } = JSON.parse(result.stdout);
    expect(runtimes.map((one: { id: string }) => one.id)).toEqual([
      'openclaw',
      'hermes',
      'claude-code',
      'codex',
      'opencode',
      'cursor',
      'kimi',
      'copilot',
      'antigravity',
      'pi',
    ]);
    expect(bridges.map((one: { id: string }) => one.id)).toEqual(['cc-connect']);
    expect(runtimes.flatMap((one: Record<string, unknown>) => misfits(RUNTIME, one))).toEqual([]);
    expect(runtimes[3]).toMatchObject({
      status: 'available',
      version: 'codex-cli 0.171.0',
      installState: 'installed',
    });
    expect(runtimes[0]).toMatchObject({ status: 'missing', version: null, readiness: 'Not installed' });
    expect(runtimeSessions).toBeNull();
  });

  test('session-list and runtime-scan --sessions: every field of instances and sessions', async () => {
    using home = temporaryHome();
    layClaude(home.path, 'i-perm-approve');
    layCodex(home.path, 'exec-tool');
    const list = JSON.parse((await cli(['session-list', '--json'], { home: home.path })).stdout);
    const scan = JSON.parse(
      (await cli(['runtime-scan', '--sessions', '--json'], { home: home.path })).stdout,
    );
    for (const snapshot of [list, scan.runtimeSessions]) {
      expect(snapshot.sessions).toHaveLength(2);
      expect(snapshot.sessions.flatMap((one: Record<string, unknown>) => misfits(SESSION, one))).toEqual([]);
      expect(snapshot.instances.flatMap((one: Record<string, unknown>) => misfits(INSTANCE, one))).toEqual(
        [],
      );
      expect(typeof snapshot.scannedAt).toBe('string');
    }
  });

  test('runtime-watch --json: a snapshot, then added, changed and removed as they happen', async () => {
    using home = temporaryHome();
    const first = layClaude(home.path, 'h-simple');
    const child = Bun.spawn([await compiledBinary(), 'runtime-watch', '--json'], {
      cwd: home.path,
      env: bareEnvironment(home.path),
      stdout: 'pipe',
      stderr: 'pipe',
    });
    const events = lines(child.stdout);
    try {
      expect(await next(events)).toMatchObject({
        type: 'snapshot',
        snapshot: { sessions: [{ sessionId: first }] },
      });
      const second = layClaude(home.path, 'h-api-error-401', 0);
      expect(await next(events)).toMatchObject({
        type: 'session_added',
        sessionId: second,
        state: 'failed',
        petReaction: 'error',
      });
      const file = join(home.path, '.claude', 'projects', '-home-dev-acme-app', `${second}.jsonl`);
      renameSync(file, join(home.path, 'elsewhere.jsonl'));
      expect(await next(events)).toMatchObject({
        type: 'session_removed',
        sessionId: second,
        previousState: 'failed',
        state: 'stopped',
        petReaction: 'idle',
      });
    } finally {
      child.kill('SIGINT');
    }
    expect(await child.exited).toBe(0);
    expect(await new Response(child.stderr).text()).toBe('');
  });
});

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<Record<string, unknown>> {
  const decoder = new TextDecoder();
  const held = { text: '' };
  for await (const chunk of stream) {
    held.text += decoder.decode(chunk, { stream: true });
    const parts = held.text.split('\n');
    held.text = parts.pop() ?? '';
    for (const part of parts) yield JSON.parse(part);
  }
}

async function next(events: AsyncGenerator<Record<string, unknown>>): Promise<Record<string, unknown>> {
  const { value, done } = await events.next();
  if (done) throw new Error('the watch ended');
  return value;
}
