import { describe, expect, test } from 'bun:test';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { claudeCode } from '../../../src/install/hooks/claude.ts';
import { claudeEvents } from '../../../src/install/hooks/claude-events.ts';
import { carryOut, P1, P2, stage } from './context.ts';

const FILE = '.claude/settings.json';
const NEW = '2.1.332 (Claude Code)';
const hook = (command: string, more = {}) => ({ hooks: [{ type: 'command', command, ...more }] });
const ours = (program: string) => `${program} hook --agent claude`;
const hooksIn = (text: string | undefined) => JSON.parse(text ?? '{}').hooks;

describe('which events (S-810, R-07, R-21)', () => {
  test('all that were seen in both recorded versions, PostToolBatch with them', () => {
    for (const version of ['2.1.197', NEW]) {
      expect(claudeEvents([version]).install).toEqual([
        'SessionStart',
        'UserPromptSubmit',
        'PreToolUse',
        'PostToolUse',
        'Notification',
        'Stop',
        'SubagentStop',
        'SessionEnd',
        'PermissionRequest',
        'PermissionDenied',
        'PostToolUseFailure',
        'PostToolBatch',
        'StopFailure',
        'Elicitation',
        'ElicitationResult',
        'SubagentStart',
        'PreCompact',
        'PostCompact',
      ]);
    }
  });

  test('R-21: the short list for an older version, an unknown one, and where one of several is either', () => {
    for (const versions of [[], [undefined], ['2.1.100'], [NEW, '2.0.9'], [NEW, undefined], ['unclear']])
      expect(claudeEvents(versions).install).toHaveLength(8);
  });

  test('hooks that replace what the program does are never installed', () => {
    expect(claudeEvents([NEW]).install.filter((event) => event.startsWith('Worktree'))).toEqual([]);
  });

  test('only of an old version is it known what it does not know', () => {
    expect(claudeEvents([undefined]).unknown).toEqual([]);
    expect(claudeEvents(['2.1.100']).unknown).toContain('PostToolBatch');
  });
});

describe('install', () => {
  test('S-811 S-810 R-21: a group of its own an event, with a matcher where tools are meant, and 5 s', async () => {
    using one = stage();
    one.found(NEW);
    carryOut(await claudeCode.planInstall(one.context()));
    const hooks = hooksIn(one.read(FILE));
    expect(Object.keys(hooks)).toHaveLength(18);
    expect(hooks.Stop).toEqual([hook(ours(P1), { timeout: 5 })]);
    const matched = Object.keys(hooks).filter((event) => hooks[event][0].matcher === '*');
    expect(matched).toEqual([
      'PreToolUse',
      'PostToolUse',
      'PermissionRequest',
      'PermissionDenied',
      'PostToolUseFailure',
    ]);
  });

  test('C-301: unrelated hooks, other keys, odd spacing stay to the byte', async () => {
    using one = stage();
    one.found('2.1.100');
    const text =
      '{ "model":"opus",\n   "hooks" : { "Stop":[ {"hooks":[{"type":"command","command":"x"}]} ] }  }';
    one.write(FILE, text);
    carryOut(await claudeCode.planInstall(one.context()));
    const after = one.read(FILE) ?? '';
    expect(
      after.startsWith(
        '{ "model":"opus",\n   "hooks" : { "Stop":[ {"hooks":[{"type":"command","command":"x"}]}',
      ),
    ).toBe(true);
    expect(Object.keys(JSON.parse(after))).toEqual(['model', 'hooks']);
    carryOut(await claudeCode.planUninstall(one.context()));
    expect(one.read(FILE)).toBe(text);
  });

  test('C-302 S-812: from P1, then from P2: one of ours an event, in its place, with P2', async () => {
    using one = stage();
    one.found('2.1.100');
    carryOut(await claudeCode.planInstall(one.context()));
    const text = one.read(FILE) ?? '';
    const more = text.replace(
      '"Stop": [',
      '"Stop": [\n      {"hooks":[{"type":"command","command":"first"}]},',
    );
    one.write(FILE, more);
    carryOut(await claudeCode.planInstall(one.context({ program: P2 })));
    expect(one.read(FILE)).toBe(more.replaceAll(P1, P2));
  });

  test('C-303 S-812: of two of ours, the present one stays and the other goes', async () => {
    using one = stage();
    one.found('2.1.100');
    const both = [hook(ours(P2)), hook('theirs'), hook(ours(P1))];
    one.write(FILE, JSON.stringify({ hooks: { Stop: both, SessionStart: [both[0], both[0]] } }));
    carryOut(await claudeCode.planInstall(one.context()));
    const hooks = hooksIn(one.read(FILE));
    expect(hooks.Stop).toEqual([hook('theirs'), hook(ours(P1))]);
    expect(hooks.SessionStart).toEqual([hook(ours(P1), { timeout: 5 })]);
  });

  test('S-813 C-304: customised sinks are left alone by install and uninstall, and counted', async () => {
    using one = stage();
    one.found('2.1.100');
    const kept = [
      `${P2} hook --socket /s`,
      `${P2} hook --agent codex`,
      `FOO=1 ${P2} hook`,
      `nice ${P2} hook`,
      `cd /x && ${P2} hook`,
    ].map((command) => hook(command));
    one.write(FILE, JSON.stringify({ hooks: { Stop: kept } }));
    expect(carryOut(await claudeCode.planInstall(one.context())).said).toContain(
      '5 hooks of ours with other words',
    );
    expect(hooksIn(one.read(FILE)).Stop).toEqual([...kept, hook(ours(P1), { timeout: 5 })]);
    expect(carryOut(await claudeCode.planUninstall(one.context())).said).toContain(
      '5 hooks of ours with other words',
    );
    expect(hooksIn(one.read(FILE)).Stop).toEqual(kept);
  });

  test('S-806 C-309: sinks of omni-dev stay, and are mentioned', async () => {
    using one = stage();
    const text = JSON.stringify({ hooks: { Stop: [hook('/usr/bin/omni-dev sessions hook')] } });
    one.write(FILE, text);
    expect(carryOut(await claudeCode.planInstall(one.context())).said).toContain(
      'omni-dev is left alone; both will run',
    );
    expect(hooksIn(one.read(FILE)).Stop[0]).toEqual(hook('/usr/bin/omni-dev sessions hook'));
    carryOut(await claudeCode.planUninstall(one.context()));
    expect(one.read(FILE)).toBe(text);
  });

  test('H5 T5 C-327: again, nothing: not even written with the same bytes', async () => {
    using one = stage();
    one.found(NEW);
    carryOut(await claudeCode.planInstall(one.context()));
    const before = statSync(join(one.home, FILE)).ino;
    expect((await claudeCode.planInstall(one.context())).kind).toBe('nothing');
    expect(statSync(join(one.home, FILE)).ino).toBe(before);
  });

  test('R-21: a downgrade takes our entries out of the events that it would warn of', async () => {
    using one = stage();
    one.found(NEW);
    carryOut(await claudeCode.planInstall(one.context()));
    one.found('2.1.100');
    expect((await claudeCode.status(one.context())).installed).toBe('partly');
    carryOut(await claudeCode.planInstall(one.context()));
    expect(Object.keys(hooksIn(one.read(FILE)))).toHaveLength(8);
  });

  test('S-810: $CLAUDE_CONFIG_DIR and --settings name other files', async () => {
    using one = stage();
    carryOut(await claudeCode.planInstall(one.context({ options: { settings: 'here.json' } })));
    one.found(NEW);
    const env = { CLAUDE_CONFIG_DIR: join(one.home, 'elsewhere') };
    carryOut(await claudeCode.planInstall(one.context({ env })));
    expect(one.read('here.json')).toContain(ours(P1));
    expect(one.read('elsewhere/settings.json')).toContain(ours(P1));
    expect(one.read(FILE)).toBeUndefined();
  });

  test('a computer without Claude Code gets no folder of its', async () => {
    using one = stage();
    expect((await claudeCode.planInstall(one.context())).kind).toBe('absent');
    expect(one.read(FILE)).toBeUndefined();
  });
});

describe('files that are not edited', () => {
  test.each([
    ['H1 R-23: a comment', '{\n  // mine\n  "hooks": {}\n}'],
    ['C-307: not JSON', 'not json'],
    ['C-307: a list', '[1]'],
    ['C-307: a text', '"x"'],
  ])('%s: refused, saying that the whole file is ignored, with the lines to paste', async (_what, text) => {
    using one = stage();
    one.write(FILE, text);
    const plan = await claudeCode.planInstall(one.context());
    if (plan.kind !== 'refused') throw new Error(plan.kind);
    expect(plan.message).toContain('Claude Code ignores the whole file');
    expect(plan.byHand.join('\n')).toContain(`"command": "${ours(P1)}"`);
    expect(plan.byHand.join('\n')).toContain('"SessionStart"');
    expect(one.read(FILE)).toBe(text);
    expect((await claudeCode.status(one.context())).installed).toBe('no');
    expect((await claudeCode.planUninstall(one.context())).kind).toBe('refused');
  });

  test('C-307 S-801: a blank file is an empty object', async () => {
    using one = stage();
    one.write(FILE, ' \n');
    carryOut(await claudeCode.planInstall(one.context()));
    expect(Object.keys(hooksIn(one.read(FILE)))).toHaveLength(8);
    carryOut(await claudeCode.planUninstall(one.context()));
    expect(one.read(FILE)).toBe(' \n');
  });

  test('C-307 S-803: hooks of another shape are skipped, and said to be not installed', async () => {
    using one = stage();
    one.write(FILE, '{"hooks":5}');
    expect(await claudeCode.planInstall(one.context())).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining('"hooks" is not an object'),
      byHand: expect.arrayContaining(['    "SessionEnd": [']),
    });
    expect((await claudeCode.planUninstall(one.context())).kind).toBe('nothing');
    expect(one.read(FILE)).toBe('{"hooks":5}');
    one.write(FILE, '{"hooks":{"Stop":5}}');
    expect(carryOut(await claudeCode.planInstall(one.context())).said).toContain('Not installed for Stop');
    const hooks = hooksIn(one.read(FILE));
    expect(hooks.Stop).toBe(5);
    expect(Object.keys(hooks)).toHaveLength(8);
    expect((await claudeCode.status(one.context())).installed).toBe('partly');
  });
});

describe('uninstall (S-814)', () => {
  test('C-306: no file, and none is made', async () => {
    using one = stage();
    expect((await claudeCode.planUninstall(one.context())).kind).toBe('nothing');
    expect(one.read(FILE)).toBeUndefined();
  });

  test('from every event, present and stale, then empty groups and events; others stay', async () => {
    using one = stage();
    const hooks = {
      Stop: [
        hook(ours(P2)),
        {
          hooks: [
            { type: 'command', command: 'mine' },
            { type: 'command', command: ours(P1) },
          ],
        },
      ],
      CwdChanged: [hook(`${P2} hook`)],
      Other: [{ hooks: [] }],
    };
    one.write(FILE, JSON.stringify({ hooks, a: 1 }));
    carryOut(await claudeCode.planUninstall(one.context()));
    expect(JSON.parse(one.read(FILE) ?? '')).toEqual({
      hooks: { Stop: [hook('mine')], Other: [{ hooks: [] }] },
      a: 1,
    });
  });

  test('undo takes back the last step, whichever it was, to the byte', async () => {
    using one = stage();
    const text = '{"a" : 1}';
    one.write(FILE, text);
    carryOut(await claudeCode.planInstall(one.context()));
    const installed = one.read(FILE);
    carryOut(await claudeCode.planUninstall(one.context()));
    expect(one.read(FILE)).toBe(text);
    const undo = async () => {
      const plan = await claudeCode.planUndo?.(one.context());
      return plan && carryOut(plan);
    };
    await undo();
    expect(one.read(FILE)).toBe(installed);
    await undo();
    expect(one.read(FILE)).toBe(text);
    expect((await undo())?.said).toContain('no step of ours');
  });
});

describe('what others do meanwhile', () => {
  test('H12: a file that has changed between the look and the deed is not written', async () => {
    using one = stage();
    one.write(FILE, '{}');
    const plan = await claudeCode.planInstall(one.context());
    one.write(FILE, '{"model": "opus"}');
    expect(carryOut(plan).kinds).toEqual(['conflict']);
    expect(one.read(FILE)).toBe('{"model": "opus"}');
  });

  test('undo leaves a file alone in which someone has changed what we wrote, and shows how', async () => {
    using one = stage();
    one.write(FILE, '{}');
    carryOut(await claudeCode.planInstall(one.context()));
    const changed = (one.read(FILE) ?? '').replaceAll('"timeout": 5', '"timeout": 9');
    one.write(FILE, changed);
    const plan = await claudeCode.planUndo?.(one.context());
    if (plan?.kind !== 'refused') throw new Error(plan?.kind);
    expect(plan.byHand.join('\n')).toContain('+            "timeout": 9');
    expect(one.read(FILE)).toBe(changed);
  });

  test('uninstall takes ours out of it all the same, and leaves what is not ours', async () => {
    using one = stage();
    one.write(FILE, '{\n  "a": 1\n}\n');
    carryOut(await claudeCode.planInstall(one.context()));
    one.write(
      FILE,
      (one.read(FILE) ?? '').replaceAll('"timeout": 5', '"timeout": 9').replace('"a": 1', '"a": 2'),
    );
    carryOut(await claudeCode.planUninstall(one.context()));
    expect(JSON.parse(one.read(FILE) ?? '')).toEqual({ a: 2 });
  });
});

describe('status (R-48)', () => {
  test('no, yes, partly, with what is missing and what is stale', async () => {
    using one = stage();
    one.found('2.1.100');
    const look = (program = P1) => claudeCode.status(one.context({ program }));
    expect(await look()).toMatchObject({ installed: 'no', trusted: 'unneeded', commands: [] });
    carryOut(await claudeCode.planInstall(one.context()));
    expect(await look()).toMatchObject({
      installed: 'yes',
      commands: [{ command: ours(P1), argv: ['/bin/sh', '-c', ours(P1)], agent: 'claude' }],
    });
    const moved = await look(P2);
    expect(moved.installed).toBe('partly');
    expect(moved.notes.join()).toContain(`start another program than this one: ${ours(P1)}`);
    one.found(NEW);
    expect((await look()).notes.join()).toContain('Missing: PermissionRequest');
  });

  test('a switch that turns all hooks off is said', async () => {
    using one = stage();
    one.write(FILE, '{"disableAllHooks": true}');
    carryOut(await claudeCode.planInstall(one.context()));
    const status = await claudeCode.status(one.context());
    expect(status.notes.join()).toContain('"disableAllHooks" is true');
    expect([status.installed, status.trusted]).toEqual(['yes', 'no']);
  });
});
