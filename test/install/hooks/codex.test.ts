import { describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { codex } from '../../../src/install/hooks/codex.ts';
import { carryOut, P1, P2, stage } from './context.ts';

const FILE = '.codex/hooks.json';
const TOML = '.codex/config.toml';
const hook = (command: string, more = {}) => ({ hooks: [{ type: 'command', command, ...more }] });
const ours = (program: string) => `${program} hook --agent codex`;
const hooksIn = (text: string | undefined) => JSON.parse(text ?? '{}').hooks;
const home = () => {
  const one = stage();
  mkdirSync(join(one.home, '.codex'));
  return one;
};

describe('install', () => {
  test('C-396 S-821 R-21: 12 events, a matcher on two, 3 s on two and 5 on the others, tagged', async () => {
    using one = home();
    carryOut(await codex.planInstall(one.context()));
    const hooks = hooksIn(one.read(FILE));
    const events = Object.keys(hooks);
    expect(events).toHaveLength(12);
    expect(events.filter((event) => hooks[event][0].matcher === '*')).toEqual(['PreToolUse', 'PostToolUse']);
    expect(events.filter((event) => hooks[event][0].hooks[0].timeout === 3)).toEqual([
      'Interrupt',
      'SessionEnd',
    ]);
    expect(events.every((event) => hooks[event][0].hooks[0].command === ours(P1))).toBe(true);
    expect(hooks.Stop).toEqual([hook(ours(P1), { timeout: 5 })]);
  });

  test('C-320 T1: behind the user’s groups, whose positions stay', async () => {
    using one = home();
    const users = [hook('A'), hook('B')];
    one.write(FILE, JSON.stringify({ hooks: { Stop: users, PreToolUse: users } }));
    carryOut(await codex.planInstall(one.context()));
    for (const event of ['Stop', 'PreToolUse']) {
      expect(hooksIn(one.read(FILE))[event].slice(0, 2)).toEqual(users);
      expect(hooksIn(one.read(FILE))[event]).toHaveLength(3);
    }
  });

  test('C-321 S-822: an untagged entry of ours by hand is tagged in its place, and no second one is added', async () => {
    using one = home();
    one.write(FILE, JSON.stringify({ hooks: { Stop: [hook(`${P1} hook`), hook('B')] } }));
    carryOut(await codex.planInstall(one.context()));
    expect(hooksIn(one.read(FILE)).Stop).toEqual([hook(ours(P1), { timeout: 5 }), hook('B')]);
  });

  test('C-322 S-822: a stale one with other words is renewed in its place, without them, with its time limit', async () => {
    using one = home();
    const stale = {
      hooks: [
        { type: 'command', command: 'A' },
        ...hook(`${P2} hook --agent codex --socket /s`, { timeout: 600 }).hooks,
      ],
    };
    one.write(FILE, JSON.stringify({ hooks: { Interrupt: [stale, hook('B')] } }));
    carryOut(await codex.planInstall(one.context()));
    expect(hooksIn(one.read(FILE)).Interrupt).toEqual([
      {
        hooks: [
          { type: 'command', command: 'A' },
          { type: 'command', command: ours(P1), timeout: 3 },
        ],
      },
      hook('B'),
    ]);
  });

  test('S-805 S-813: one with something before it is left alone and counted', async () => {
    using one = home();
    const kept = hook(`nice ${P2} hook --agent codex`);
    one.write(FILE, JSON.stringify({ hooks: { Stop: [kept] } }));
    expect(carryOut(await codex.planInstall(one.context())).said).toContain(
      '1 hook of ours with other words',
    );
    expect(hooksIn(one.read(FILE)).Stop[0]).toEqual(kept);
  });

  test('R-23: where the user keeps hooks in config.toml, ours go there, behind them, and no hooks.json is made', async () => {
    using one = home();
    const text =
      'model = "x" # mine\n\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "A"\n\n[hooks.state."/p:stop:0:0"]\ntrusted_hash = "sha256:1"\n';
    one.write(TOML, text);
    carryOut(await codex.planInstall(one.context()));
    expect(one.read(FILE)).toBeUndefined();
    const { hooks } = Bun.TOML.parse(one.read(TOML) ?? '') as { hooks: Record<string, unknown> };
    expect(Object.keys(hooks)).toHaveLength(13);
    expect(hooks['Stop']).toEqual([
      { hooks: [{ type: 'command', command: 'A' }] },
      { hooks: [{ type: 'command', command: ours(P1), timeout: 5 }] },
    ]);
    expect(hooks['state']).toEqual({ '/p:stop:0:0': { trusted_hash: 'sha256:1' } });
    expect((await codex.status(one.context())).files).toEqual([join(one.home, TOML)]);
    carryOut(await codex.planUninstall(one.context()));
    expect(one.read(TOML)).toBe(text);
  });

  test('R-23: ours go on standing where they stand, and hooks in both files are said', async () => {
    using one = home();
    carryOut(await codex.planInstall(one.context()));
    one.write(TOML, '[[hooks.Stop]]\nhooks = [{ type = "command", command = "A" }]\n');
    const plan = await codex.planInstall(one.context({ program: P2 }));
    expect(carryOut(plan).said).toContain('while hooks stand in both files');
    expect(one.read(FILE)).toContain(ours(P2));
  });

  test('a config.toml with nothing but trust in it holds no hooks', async () => {
    using one = home();
    one.write(TOML, '[hooks.state."/p:stop:0:0"]\ntrusted_hash = "sha256:1"\n');
    carryOut(await codex.planInstall(one.context()));
    expect(one.read(FILE)).toContain(ours(P1));
  });

  test('C-326 S-820: not there: skipped and said; a home, a program, or --codex-home: installed', async () => {
    using nothing = stage();
    const skipped = await codex.planInstall(nothing.context());
    expect(skipped).toMatchObject({
      kind: 'absent',
      message: expect.stringContaining('Codex is not on this computer'),
    });
    expect(nothing.read(FILE)).toBeUndefined();
    expect((await codex.planUninstall(nothing.context())).kind).toBe('nothing');

    using folder = home();
    expect((await codex.planInstall(folder.context())).kind).toBe('changes');
    using program = stage();
    program.found('codex-cli 0.171.0');
    expect((await codex.planInstall(program.context())).kind).toBe('changes');
    using named = stage();
    carryOut(await codex.planInstall(named.context({ options: { 'codex-home': 'there' } })));
    expect(named.read('there/hooks.json')).toContain(ours(P1));
    using variable = stage();
    variable.found('0.171.0');
    carryOut(await codex.planInstall(variable.context({ env: { CODEX_HOME: join(variable.home, 'x') } })));
    expect(variable.read('x/hooks.json')).toContain(ours(P1));
  });

  test('C-327 S-825 T5: no change: no reminder, no question, and the file is not written', async () => {
    using one = home();
    const first = await codex.planInstall(one.context());
    if (first.kind !== 'changes') throw new Error(first.kind);
    expect(first.consent?.declined.join(' ')).toContain('/hooks');
    carryOut(first);
    const { ino } = statSync(join(one.home, FILE));
    const again = await codex.planInstall(one.context());
    expect(again).toMatchObject({ kind: 'nothing', notes: [] });
    expect('consent' in again).toBe(false);
    expect(statSync(join(one.home, FILE)).ino).toBe(ino);
  });

  test('a file that Codex rejects is refused', async () => {
    using one = home();
    one.write(FILE, '{"hooks": {},}');
    const plan = await codex.planInstall(one.context());
    expect(plan).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining('Codex ignores every hook'),
    });
    expect(one.read(FILE)).toBe('{"hooks": {},}');
  });

  test('S-803: an event that is no list is skipped and said', async () => {
    using one = home();
    one.write(FILE, '{"hooks":{"Stop":{}}}');
    expect(carryOut(await codex.planInstall(one.context())).said).toContain('Not installed for Stop');
    expect(hooksIn(one.read(FILE)).Stop).toEqual({});
  });

  test('R-23: where a file that may hold the user’s hooks can’t be read, none are put beside it', async () => {
    using one = home();
    one.write(TOML, '[[hooks.Stop]');
    expect(await codex.planInstall(one.context())).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining('config.toml:1'),
    });
    expect(one.read(FILE)).toBeUndefined();
  });

  test('S-803 R-23: hooks of another shape are no place for any, and that is no success', async () => {
    using one = home();
    one.write(FILE, '{"hooks":[]}');
    expect((await codex.planInstall(one.context())).kind).toBe('refused');
    expect(one.read(FILE)).toBe('{"hooks":[]}');
  });

  test('R-46 W2: on Windows the command is written for cmd', async () => {
    using one = home();
    const program = 'C:\\First Last\\shadowob-connector.exe';
    const context = one.context({
      platform: 'win32',
      program,
      options: { 'codex-home': join(one.home, '.codex') },
    });
    carryOut(await codex.planInstall(context));
    const command = 'C:\\First^ Last\\shadowob-connector.exe hook --agent codex';
    expect(hooksIn(one.read(FILE)).Stop).toEqual([hook(command, { timeout: 5 })]);
    expect((await codex.status(context)).commands).toMatchObject([
      { command, argv: ['cmd.exe', '/d', '/c', command] },
    ]);
  });
});

describe('uninstall', () => {
  test('S-823: from the file that can be read, though the other one can’t, which is said', async () => {
    using one = home();
    const before = '{"hooks": {"Stop": []}}';
    one.write(FILE, before);
    carryOut(await codex.planInstall(one.context()));
    one.write(TOML, '[[hooks.Stop]');
    const plan = await codex.planUninstall(one.context());
    expect(plan).toMatchObject({
      kind: 'changes',
      left: { kind: 'refused', message: expect.stringContaining('config.toml:1') },
    });
    carryOut(plan);
    expect(one.read(FILE)).toBe(before);
  });

  test('S-823: a config.toml that its owner keeps read-only, with nothing of ours, is in nobody’s way', async () => {
    using one = home();
    one.write(TOML, 'model = "x"\n');
    carryOut(await codex.planInstall(one.context()));
    chmodSync(join(one.home, TOML), 0o444);
    const plan = await codex.planUninstall(one.context());
    expect(carryOut(plan).kinds).toEqual(['removed']);
    expect(plan).not.toHaveProperty('left');
  });

  test('C-325 S-823: installs and removals with B behind: B keeps its index, placeholders keep its place', async () => {
    using one = home();
    one.write(FILE, '{"hooks":{}}');
    for (const _round of [1, 2, 3]) {
      carryOut(await codex.planInstall(one.context()));
      const hooks = hooksIn(one.read(FILE));
      if (!JSON.stringify(hooks).includes('"B"')) {
        hooks.Stop.push(hook('B'));
        one.write(FILE, JSON.stringify({ hooks }));
      }
      const index = () =>
        hooksIn(one.read(FILE)).Stop.findIndex((group: object) => JSON.stringify(group).includes('"B"'));
      expect(index()).toBe(1);
      carryOut(await codex.planUninstall(one.context()));
      expect(index()).toBe(1);
      expect(hooksIn(one.read(FILE))).toEqual({ Stop: [{ hooks: [] }, hook('B')] });
    }
  });

  test('S-823: groups at the end that hold nothing go, then the event; an empty one before others stays', async () => {
    using one = home();
    const hooks = {
      Stop: [{ hooks: [] }, hook('A'), { hooks: [] }, hook(ours(P1)), { hooks: [] }],
      Interrupt: [{ hooks: [] }, hook(ours(P2))],
      SessionEnd: [{ hooks: [] }],
    };
    one.write(FILE, JSON.stringify({ hooks }));
    carryOut(await codex.planUninstall(one.context()));
    expect(hooksIn(one.read(FILE))).toEqual({
      Stop: [{ hooks: [] }, hook('A')],
      SessionEnd: [{ hooks: [] }],
    });
  });

  test('but what the user’s file had at its end before us comes back with it, to the byte', async () => {
    using one = home();
    const text = '{"hooks": {"Stop": [ {"hooks":[]} ]}}';
    one.write(FILE, text);
    carryOut(await codex.planInstall(one.context()));
    carryOut(await codex.planUninstall(one.context()));
    expect(one.read(FILE)).toBe(text);
  });

  test('C-324 S-824: ours before another in one group: removed, and its trust is asked for again', async () => {
    using one = home();
    const handlers = [ours(P1), 'mine'].map((command) => ({ type: 'command', command }));
    one.write(FILE, JSON.stringify({ hooks: { Stop: [{ hooks: handlers }] } }));
    expect(carryOut(await codex.planUninstall(one.context())).said).toContain('moves up in Stop');
    expect(hooksIn(one.read(FILE)).Stop).toEqual([hook('mine')]);
  });

  test('S-824: else it says that trust stands', async () => {
    using one = home();
    one.write(FILE, JSON.stringify({ hooks: { Stop: [hook('mine')] } }));
    carryOut(await codex.planInstall(one.context()));
    expect(carryOut(await codex.planUninstall(one.context())).said).toContain(
      'trusts of your other hooks stands',
    );
  });

  test('S-801: a file that was not there is not there again', async () => {
    using one = home();
    carryOut(await codex.planInstall(one.context()));
    carryOut(await codex.planUninstall(one.context()));
    expect(one.read(FILE)).toBeUndefined();
  });
});
