import { describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, readdirSync } from 'node:fs';
import { placesOf } from '../../../../src/runtime/control/places.ts';
import { listRecords } from '../../../../src/runtime/control/record.ts';
import { EXIT } from '../../../../src/runtime/errors.ts';
import { isAlive } from '../../../../src/runtime/process/identity.ts';
import { document, messages, noHosts, openElsewhere, openStage, starts, until } from './stage.ts';

// Each starts several programs, and the machine may be busy.
setDefaultTimeout(120_000);

describe.skipIf(process.platform !== 'linux')('owners', () => {
  test('M1: refused by default, each choice explained, nothing started', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id);
    const ran = await stage.run(['session-send', id, '--message', 'hi', '--json']);
    expect(ran.code).toBe(EXIT.ownedElsewhere);
    expect(document(ran)).toMatchObject({
      accepted: false,
      queued: false,
      mode: null,
      error: { kind: 'ownedElsewhere', message: expect.stringContaining(`process ${owner.child.pid}`) },
    });
    for (const choice of ['queue', 'fork', 'force']) expect(ran.stderr).toContain(choice);
    expect(stage.log()).toEqual([]);
    await noHosts(stage);
  });

  test('A4: an owner that waits for an approval is said to', async () => {
    await using stage = openStage();
    const id = stage.session();
    using _owner = await openElsewhere(stage, id, { status: 'waiting', waitingFor: 'permission prompt' });
    const ran = await stage.run(['session-send', id, '--message', 'hi', '--when-owned', 'queue', '--json']);
    expect(document(ran)).toMatchObject({
      queued: true,
      events: [{ type: 'queued', reason: expect.stringContaining('which waits for an answer there') }],
    });
    await stage.run(['session-abort', id]);
    await noHosts(stage);
  });

  test('queue: delivered when the owner leaves; its one file is gone then', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id);
    const ran = await stage.run([
      'session-send',
      id,
      '--message',
      'later',
      '--when-owned',
      'queue',
      '--json',
    ]);
    expect([ran.code, document(ran)['mode']]).toEqual([0, 'queue']);
    const ref = { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: id };
    const { queue } = placesOf(stage.connectorHome, ref);
    expect(readdirSync(queue).length).toBe(1);
    expect(messages(stage)).toEqual([]);
    owner.child.kill('SIGKILL');
    await until(() => messages(stage).includes('later'));
    await noHosts(stage);
    expect(existsSync(queue)).toBe(false);
  });

  test('queue: a host that is killed while it waits loses nothing: the next message takes it along', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id);
    await stage.run(['session-send', id, '--message', 'first', '--when-owned', 'queue']);
    const [record] = listRecords(stage.connectorHome);
    process.kill(record?.host.pid ?? 0, 'SIGKILL');
    owner.child.kill('SIGKILL');
    await owner.child.exited;
    const ran = await stage.run(['session-send', id, '--message', 'second', '--wait']);
    expect(ran.code).toBe(0);
    expect(messages(stage)).toEqual(['first', 'second']);
    await noHosts(stage);
  });

  test('queue: what a killed host has left is told, and abort withdraws it', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id);
    await stage.run(['session-send', id, '--message', 'first', '--when-owned', 'queue']);
    process.kill(listRecords(stage.connectorHome)[0]?.host.pid ?? 0, 'SIGKILL');
    owner.child.kill('SIGKILL');
    await owner.child.exited;
    const listed = await until(async () => {
      const ran = await stage.run(['session-approve', '--json']);
      return ran.stderr.includes('without anybody to deliver') && ran;
    });
    expect(listed.stderr).toContain(`1 message for session ${id} waits`);
    const aborted = await stage.run(['session-abort', id, '--json']);
    expect([aborted.code, document(aborted)]).toMatchObject([
      0,
      { stopped: true, detail: 'nothing ran; 1 waiting message withdrawn' },
    ]);
    expect((await stage.run(['session-abort', id])).code).toBe(EXIT.refused);
    await stage.run(['session-send', id, '--message', 'second', '--wait']);
    expect(messages(stage)).toEqual(['second']);
    await noHosts(stage);
  });

  test('fork: goes on in a copy under an id of its own; the original is not touched', async () => {
    await using stage = openStage();
    const id = stage.session();
    using _owner = await openElsewhere(stage, id);
    const ran = await stage.run(['session-send', id, '--message', 'hi', '--when-owned', 'fork', '--json']);
    const copy = String(document(ran)['sessionId']);
    expect([ran.code, copy === id]).toEqual([0, false]);
    expect(starts(stage)[0]).toEqual(
      expect.arrayContaining(['--resume', id, '--fork-session', '--session-id', copy]),
    );
    await noHosts(stage);
  });

  test('force: sent over the owner’s head, and said so', async () => {
    await using stage = openStage();
    const id = stage.session();
    using _owner = await openElsewhere(stage, id);
    const ran = await stage.run(['session-send', id, '--message', 'hi', '--when-owned', 'force', '--json']);
    expect(document(ran)['events']).toMatchObject([
      { type: 'note', text: expect.stringContaining('sent although the session is open in a terminal') },
      { type: 'accepted' },
    ]);
    await noHosts(stage);
  });

  test('M3: a session that Claude’s own daemon runs names Claude’s own way in', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id, { kind: 'bg', jobId: '14a017a9' });
    const send = await stage.run(['session-send', id, '--message', 'hi']);
    expect([send.code, send.stderr.includes('claude attach 14a017a9')]).toEqual([EXIT.ownedElsewhere, true]);
    const abort = await stage.run(['session-abort', id, '--kill']);
    expect([abort.code, abort.stderr.includes('claude stop 14a017a9')]).toEqual([EXIT.unsupported, true]);
    expect(isAlive(owner.child.pid)).toBe(true);
  });

  test('K1: a turn in another’s terminal is not stopped from here; --kill ends that program, and only then', async () => {
    await using stage = openStage();
    const id = stage.session();
    using owner = await openElsewhere(stage, id, { status: 'busy' });
    const refused = await stage.run(['session-abort', id]);
    expect([refused.code, isAlive(owner.child.pid)]).toEqual([EXIT.unsupported, true]);
    const killed = await stage.run(['session-abort', id, '--kill', '--json']);
    expect(document(killed)).toMatchObject({ stopped: true, survivors: [] });
    await owner.child.exited;
    expect(isAlive(owner.child.pid)).toBe(false);
  });
});
