import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { lockSession, whileAnswering } from '../../../src/runtime/control/push-lock.ts';

const session = { runtimeId: 'codex', instanceId: 'transcripts', sessionId: 's-1' };

async function inHome(run: (context: Parameters<typeof lockSession>[0]) => Promise<void>): Promise<void> {
  const connectorHome = mkdtempSync(join(tmpdir(), 'answering-'));
  try {
    await run({ connectorHome, platform: process.platform, version: 'test', now: Date.now });
  } finally {
    rmSync(connectorHome, { recursive: true, force: true });
  }
}

test('A2: answers to one session go one after the other, so that the later sees what the earlier did', () =>
  inHome(async (context) => {
    const steps: string[] = [];
    const first = Promise.withResolvers<void>();
    const one = whileAnswering(context, session, async () => {
      steps.push('one begins');
      await first.promise;
      steps.push('one ends');
    });
    const two = whileAnswering(context, session, async () => void steps.push('two'));
    const other = whileAnswering(context, { ...session, sessionId: 's-2' }, async () => 'another session');
    expect(await other).toBe('another session');
    expect(steps).toEqual(['one begins']);
    first.resolve();
    await Promise.all([one, two]);
    expect(steps).toEqual(['one begins', 'one ends', 'two']);
  }));

test('a session that a host of ours runs is answered nevertheless', () =>
  inHome(async (context) => {
    const host = await lockSession(context, session);
    expect(await whileAnswering(context, session, async () => host.kind)).toBe('held');
    if (host.kind === 'held') host.release();
  }));

test('an answer that fails leaves the way free', () =>
  inHome(async (context) => {
    const failed = whileAnswering(context, session, () => Promise.reject(new Error('no')));
    expect(failed).rejects.toThrow('no');
    await failed.catch(() => {});
    expect(await whileAnswering(context, session, async () => 'next')).toBe('next');
  }));
