import { afterEach, describe, expect, test } from 'bun:test';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ControlAction, Place } from '../../../src/commands/daemon-control.ts';
import { specOf } from '../../../src/commands/daemon-reach.ts';
import { detectStyle } from '../../../src/commands/output/style.ts';
import { hooksSteps } from '../../../src/commands/setup/hooks-steps.ts';
import { notifySteps } from '../../../src/commands/setup/notify-steps.ts';
import { type DaemonHands, serviceSteps } from '../../../src/commands/setup/service-steps.ts';
import type { Finding, Result, Step } from '../../../src/commands/setup/step.ts';
import { wrapperStep } from '../../../src/commands/setup/wrapper-step.ts';
import type { World } from '../../../src/commands/world.ts';
import { codex } from '../../../src/install/hooks/codex.ts';
import type { Consent, HooksPlan, HooksStatus, Integration } from '../../../src/install/hooks/integration.ts';
import { serviceManager } from '../../../src/install/service/manager.ts';
import type { ServiceManager } from '../../../src/install/service/types.ts';
import type { CommandRunner } from '../../../src/runtime/process/types.ts';
import { stage } from '../../install/hooks/context.ts';
import { createCleanup, tempFolder } from '../../runtime/daemon/harness.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

function worldIn(home: string, platform: NodeJS.Platform = 'linux'): World {
  return {
    env: {},
    home,
    cwd: home,
    platform,
    version: '0.0.0',
    now: () => 1_796_000_000_000,
    log: { debug() {}, warn() {} },
    style: detectStyle({}, {}, platform),
    signal: new AbortController().signal,
    adapters: async () => [],
    index: () => undefined,
    self: ['/opt/shadowob-connector'],
    stdin: { isTerminal: false, read: async () => new Uint8Array() },
  };
}

const NOTHING = new Map<string, Result>();
const asOffer = (finding: Finding | undefined) => {
  if (finding?.kind !== 'offer') throw new Error(`no offer: ${finding?.kind}`);
  return finding;
};
const look = async (step: Step | undefined, sofar: ReadonlyMap<string, Result> = NOTHING) =>
  step?.look(sofar);

/** A computer with a service manager, and a hand that only writes down what it was told. */
function service(platform: NodeJS.Platform, linger = 'no') {
  const home = tempFolder(cleanup);
  const world = worldIn(home, platform);
  const state = { linger, asked: [] as (readonly [ControlAction, boolean])[] };
  const run: CommandRunner = async ({ argv }) => {
    const stdout = argv.includes('show-user') ? state.linger : '';
    return { kind: 'exited', code: 0, signal: null, stdout, stderr: '' } as Awaited<
      ReturnType<CommandRunner>
    >;
  };
  mkdirSync(join(home, 'run', 'systemd'), { recursive: true });
  const env = { XDG_RUNTIME_DIR: join(home, 'run') };
  const system = { platform, env, userHome: home, uid: 1_000, run, pause: async () => {} };
  const manager = serviceManager(system, join(home, 'c'));
  const place: Place = {
    socketPath: join(home, 'c', 's'),
    home: join(home, 'c'),
    startedBy: 'foreground',
    linger: false,
  };
  const hands = (withManager: ServiceManager | undefined): DaemonHands => ({
    manager: withManager,
    run,
    async control(action, { linger: lingering }) {
      state.asked.push([action, lingering]);
      if (lingering) state.linger = 'yes';
      return { running: undefined, done: [`${action} done`], notes: [] };
    },
  });
  return { world, place, manager, state, hands };
}

describe('the daemon in the background', () => {
  for (const [platform, words] of [
    ['linux', 'a systemd user service'],
    ['darwin', 'a launchd agent'],
    ['win32', 'a task at log-on'],
  ] as const) {
    test(`S-338 on ${platform} it says which kind, and is a yes by default`, async () => {
      const s = service(platform);
      const steps = serviceSteps(s.world, s.place, s.hands(s.manager));
      const offer = asOffer(await look(steps[0]));
      expect(offer.question).toMatchObject({ fallback: true, reason: expect.stringContaining(words) });
      expect(await offer.accept()).toMatchObject({ result: 'done' });
      expect(s.state.asked).toEqual([['install', false]]);
      expect(steps.map(({ id }) => id)).toEqual(platform === 'linux' ? ['service', 'linger'] : ['service']);
    });
  }

  test('S-338 without a service manager it is a process of its own, and that is said', async () => {
    const s = service('linux');
    const [step, ...more] = serviceSteps(s.world, s.place, s.hands(undefined));
    const offer = asOffer(await look(step));
    expect(offer.question.reason).toContain('nothing starts it again at login');
    await offer.accept();
    expect([s.state.asked, more, step?.undo]).toEqual([[['start', false]], [], 'daemon stop']);
  });

  test('an installed one is said and not asked; one of another build is renewed', async () => {
    const s = service('linux');
    if (!s.manager) throw new Error('no manager');
    const files = s.manager.files(specOf(s.world, s.place.socketPath, s.place.home));
    for (const { path, text } of files) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
    }
    const [step] = serviceSteps(s.world, s.place, s.hands(s.manager));
    expect(await look(step)).toEqual({
      kind: 'already',
      says: ['Kept by systemd --user (started by the first client).'],
    });
    writeFileSync(files[1]?.path ?? '', 'ExecStart=/elsewhere');
    expect(asOffer(await look(step)).question.text).toContain('Renew');
  });

  test('D5 lingering is a question of its own, a no by default, and only where systemd keeps the daemon', async () => {
    const s = service('linux');
    const [, linger] = serviceSteps(s.world, s.place, s.hands(s.manager));
    expect(await look(linger, new Map([['service', 'declined']]))).toEqual({ kind: 'none' });
    const offer = asOffer(await look(linger, new Map([['service', 'done']])));
    expect(offer.question.fallback).toBe(false);
    expect(await offer.accept()).toMatchObject({ result: 'done' });
    expect(s.state.asked).toEqual([['install', true]]);
    expect(await look(linger, new Map([['service', 'already']]))).toMatchObject({ kind: 'already' });
  });
});

/** A runtime that asks for its user's trust. */
function trusting(plan: HooksPlan, trusted: HooksStatus['trusted'] = 'no'): Integration {
  const status = async (): Promise<HooksStatus> => ({
    present: true,
    files: [],
    installed: 'yes',
    trusted,
    notes: [],
    commands: [],
  });
  return { ...codex, planInstall: async () => plan, status };
}

describe('hooks', () => {
  const consent = (kind: 'given' | 'failed'): Consent => ({
    flag: 'trust-codex',
    question: 'Trust them?',
    declined: ['It runs none.'],
    give: async () =>
      kind === 'given'
        ? { kind, message: 'It trusts them.' }
        : { kind, message: 'It would not.', byHand: ['Do it there.'] },
  });

  test('R-23 trust is asked alone, is a no by default, and only where hooks are', async () => {
    using s = stage();
    const plan = { kind: 'nothing', files: ['/h'], notes: [], consent: consent('given') } as const;
    const [hooks, trust] = hooksSteps([trusting(plan)], s.context());
    expect(await look(hooks)).toEqual({ kind: 'already', says: ['/h'] });
    expect(await look(trust)).toEqual({ kind: 'none' });
    const offer = asOffer(await look(trust, new Map([['hooks:codex', 'already']])));
    expect(offer).toMatchObject({
      question: { text: 'Trust them?', fallback: false },
      declined: ['It runs none.'],
    });
    expect(await offer.accept()).toMatchObject({
      result: 'done',
      says: ['It trusts them.', expect.stringContaining('means nothing without them')],
    });
    const [, known] = hooksSteps([trusting(plan, 'yes')], s.context());
    expect(await look(known, new Map([['hooks:codex', 'done']]))).toMatchObject({ kind: 'already' });
  });

  test('R-23 what Codex refuses is a failure, with what to do by hand', async () => {
    using s = stage();
    const plan = { kind: 'nothing', files: [], notes: [], consent: consent('failed') } as const;
    const [, trust] = hooksSteps([trusting(plan)], s.context());
    const offer = asOffer(await look(trust, new Map([['hooks:codex', 'done']])));
    expect(await offer.accept()).toEqual({
      result: 'failed',
      says: ['It would not.', 'Do it there.'],
      problem: 'refused',
    });
  });

  test('S-820 a runtime that is not here is not mentioned; a file that can’t be edited is, with its lines', async () => {
    using s = stage();
    const [absent] = hooksSteps([trusting({ kind: 'absent', message: 'not here' })], s.context());
    expect(await look(absent)).toEqual({ kind: 'none' });
    const plan = { kind: 'refused', path: '/h', message: 'it is broken', byHand: ['paste'] } as const;
    const [refused] = hooksSteps([trusting(plan)], s.context());
    expect(await look(refused)).toEqual({
      kind: 'refused',
      says: ['it is broken', 'paste'],
      problem: 'configRefused',
    });
  });

  test('the change is there to be seen, and a file that moved meanwhile is no success', async () => {
    using s = stage();
    const change = {
      path: '/h',
      does: 'add hooks',
      diff: '+ours\n',
      commit: () => ({ kind: 'conflict' }) as never,
    };
    const plan = { kind: 'changes', changes: [change], notes: [], afterwards: ['restart it'] } as const;
    const [step] = hooksSteps([trusting(plan)], s.context());
    const offer = asOffer(await look(step));
    expect(offer.question).toMatchObject({ diff: '+ours', fallback: true });
    expect(await offer.accept()).toMatchObject({ result: 'failed', problem: 'configRefused' });
  });
});

describe('notifications', () => {
  test('R-25 off until their owner says so: a no by default; the trial is for who has just said yes', async () => {
    const home = tempFolder(cleanup);
    const connector = join(home, '.shadowob', 'connector');
    const [on, trial] = notifySteps(worldIn(home), connector);
    const offer = asOffer(await look(on));
    expect(offer.question.fallback).toBe(false);
    expect(await look(trial, new Map([['notifications', 'already']]))).toEqual({ kind: 'none' });
    expect(await offer.accept()).toMatchObject({ result: 'done' });
    expect(JSON.parse(readFileSync(join(connector, 'config.json'), 'utf8'))).toEqual({
      notifications: { enabled: true },
    });
    expect(await look(on)).toEqual({ kind: 'already', says: [] });
    expect(asOffer(await look(trial, new Map([['notifications', 'done']]))).question.fallback).toBe(true);
  });

  test('R-38 a settings file that is no use is named and not touched', async () => {
    const home = tempFolder(cleanup);
    writeFileSync(join(home, 'config.json'), '{ broken');
    const [on] = notifySteps(worldIn(home), home);
    expect(await look(on)).toMatchObject({ kind: 'refused', problem: 'configRefused' });
    expect(readFileSync(join(home, 'config.json'), 'utf8')).toBe('{ broken');
  });
});

describe('the wrapper', () => {
  test('S-840 only where such an editor is, a no by default, and looking writes nothing', async () => {
    const home = tempFolder(cleanup);
    const step = wrapperStep(worldIn(home));
    expect(await look(step)).toEqual({ kind: 'none' });
    mkdirSync(join(home, '.config', 'Code', 'User'), { recursive: true });
    const offer = asOffer(await look(step));
    expect(offer.question).toMatchObject({ fallback: false, text: expect.stringContaining('VS Code') });
    expect(existsSync(join(home, '.shadowob'))).toBe(false);
    expect(await offer.accept()).toMatchObject({ result: 'done' });
    expect(await look(step)).toMatchObject({ kind: 'already' });
  });

  test('R-46 an editor on Windows starts no script', async () => {
    expect(await look(wrapperStep(worldIn(tempFolder(cleanup), 'win32')))).toEqual({ kind: 'none' });
  });
});
