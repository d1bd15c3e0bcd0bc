/** The reported faults of other installers (H, T) and the shapes of S-8xx, on texts. */
import { describe, expect, test } from 'bun:test';
import { type Data, lookup } from '../../../src/install/edit/data.ts';
import { appendToArray, removeFromArray, removeKey, setValue } from '../../../src/install/edit/operation.ts';
import { plan, readData } from '../../../src/install/edit/plan.ts';
import { EVENTS, hooksWiring, keysWiring, PaperFile } from './helpers.ts';

const claude = hooksWiring('json', '/a/bin');
const upgraded = hooksWiring('json', '/b/bin');

const say = (text: string | null): Data => {
  const read = readData(text, 'json');
  if (read.kind !== 'data') throw new Error(read.message);
  return read.data;
};

const commands = (text: string | null, event: string): readonly unknown[] => {
  const groups = lookup(say(text), ['hooks', event]);
  const found = JSON.stringify(groups ?? []).matchAll(/"command":"([^"]*)"/g);
  return [...found].map((match) => match[1]);
};

const theirs = `{
  "model": "opus",
  "hooks": {
    "SessionStart": [
      { "hooks": [ { "type": "command", "command": "theirs 1" } ] }
    ],
    "PreToolUse": [ { "matcher": "Bash", "hooks": [ { "type": "command", "command": "theirs 2" } ] } ],
    "Stop": [
      {
        "hooks": [{ "type": "command", "command": "theirs 3", "timeout": 1 }]
      }
    ],
    "Notification": []
  },
  "permissions": { "allow": [ ] }
}
`;

describe('H: configuration edits', () => {
  test('H1: a comment never leads to a write', () => {
    const text = '{ // x\n "hooks": {} }';
    const paper = new PaperFile(text);
    expect(paper.install(claude)).toBe('refused');
    expect(paper.remove(claude)).toBe('refused');
    expect(paper.text).toBe(text);
    expect(paper.steps).toEqual([]);
  });

  test('H1 R-23: where the program reads comments, they stay', () => {
    const jsonc = hooksWiring('jsonc', '/a/bin');
    const paper = new PaperFile('{ // x\n  "hooks": {}\n}');
    expect(paper.install(jsonc)).toBe('step');
    expect(paper.text).toStartWith('{ // x\n  "hooks": {\n    "SessionStart": [');
    paper.remove(jsonc);
    expect(paper.text).toBe('{ // x\n  "hooks": {}\n}');
  });

  test('H2: what else is in the file stays where it is, to the byte', () => {
    const paper = new PaperFile(theirs);
    paper.install(claude);
    expect(paper.text).toStartWith(
      '{\n  "model": "opus",\n  "hooks": {\n    "SessionStart": [\n      { "hooks": [',
    );
    expect(paper.text).toEndWith('    "Notification": []\n  },\n  "permissions": { "allow": [ ] }\n}\n');
  });

  test('H3 H4: a foreign hook under each event outlives install, upgrade and uninstall', () => {
    const paper = new PaperFile(theirs);
    paper.install(claude);
    paper.install(upgraded);
    EVENTS.forEach((event, index) => {
      expect(commands(paper.text, event)).toEqual([
        `theirs ${index + 1}`,
        '/b/bin/shadowob-connector hook --agent claude',
      ]);
    });
    paper.remove(upgraded);
    expect(paper.text).toBe(theirs);
  });

  test('H4: hooks that the user adds beside ours outlive an uninstall', () => {
    const paper = new PaperFile(null);
    paper.install(claude);
    const added = plan(paper.text, 'json', [
      appendToArray(['hooks', 'Stop'], { hooks: [{ command: 'new' }] }),
    ]);
    if (added.kind === 'plan') paper.text = added.after;
    expect(paper.remove(claude)).toBe('step');
    expect(say(paper.text)).toEqual({ hooks: { Stop: [{ hooks: [{ command: 'new' }] }] } });
  });

  test('H5 C-325: three runs are one run', () => {
    const paper = new PaperFile(theirs);
    paper.install(claude);
    const once = paper.text;
    expect([paper.install(claude), paper.install(claude)]).toEqual(['nothing', 'nothing']);
    expect(paper.text).toBe(once);
    expect(paper.steps).toHaveLength(1);
  });

  test('H6 C-302: from another path, ours is replaced in its place', () => {
    const paper = new PaperFile(theirs);
    paper.install(claude);
    const before = paper.text;
    paper.install(upgraded);
    expect(paper.text).toBe(before?.replaceAll('/a/bin', '/b/bin') ?? '');
  });

  test('H10: a healthy file with a mark and CRLF is a byte-level no-op; a needed edit keeps both', () => {
    const text = `\ufeff${theirs.replaceAll('\n', '\r\n')}`;
    const paper = new PaperFile(text);
    paper.install(claude);
    expect(paper.text).toStartWith('\ufeff{\r\n');
    expect(paper.text?.replaceAll('\r\n', '')).not.toContain('\n');
    expect(paper.install(claude)).toBe('nothing');
    paper.remove(claude);
    expect(paper.text).toBe(text);
  });

  test('H11: when a program drops our hooks, the next look proposes them again, once', () => {
    const paper = new PaperFile(theirs);
    paper.install(claude);
    paper.text = theirs.replace('opus', 'sonnet');
    expect(paper.install(claude)).toBe('step');
    expect(paper.install(claude)).toBe('nothing');
    paper.remove(claude);
    expect(paper.text).toBe(theirs.replace('opus', 'sonnet'));
  });
});

describe('what we made goes, what was there stays', () => {
  const shapes = [
    '{}',
    '{ }',
    '{\n}',
    '{"hooks": {}}',
    '{"hooks": { }, "a": 1}',
    '{\n  "hooks": {"Stop": []}\n}\n',
    '',
  ];

  test.each(shapes)('install and uninstall of %j', (text) => {
    const paper = new PaperFile(text);
    paper.install(claude);
    paper.remove(claude);
    expect(paper.text).toBe(text);
  });

  test.each([
    ['{"hooks": {}}', { hooks: {} }],
    ['{"hooks": {"Stop": []}}', { hooks: { Stop: [] } }],
    ['{}', {}],
  ])('also when a program has rewritten the file meanwhile: %j', (text, left) => {
    const paper = new PaperFile(text);
    paper.install(claude);
    paper.text = JSON.stringify(say(paper.text), null, 4);
    paper.remove(claude);
    expect(say(paper.text)).toEqual(left);
  });

  test('S-814: without a record, emptied lists of events go, and a key of the top level stays', () => {
    const paper = new PaperFile('{"a": 1}');
    paper.install(claude);
    paper.steps = [];
    paper.remove(claude);
    expect(say(paper.text)).toEqual({ a: 1, hooks: {} });
  });

  test('S-814 C-306: nothing of ours, nothing to remove', () => {
    expect(new PaperFile(null).remove(claude)).toBe('nothing');
    expect(new PaperFile(theirs).remove(claude)).toBe('nothing');
  });
});

describe('two of ours in one file', () => {
  const statusLine = keysWiring('json', { statusLine: '/a/bin/shadowob-connector status-line' });

  test.each([
    [claude, statusLine],
    [statusLine, claude],
  ])('each goes without the other, and the last one leaves the first bytes', (first, second) => {
    const paper = new PaperFile(theirs);
    paper.install(first);
    const withFirst = paper.text;
    paper.install(second);
    paper.remove(second);
    expect(paper.text).toBe(withFirst);
    paper.install(second);
    paper.remove(first);
    paper.remove(second);
    expect(paper.text).toBe(theirs);
  });

  test('a container that both use goes with the last of them', () => {
    const one = keysWiring('json', {});
    const key = (name: string) => ({
      ...one,
      id: name,
      install: () => [setValue(['env', name], 'x')],
      remove: (data: Data) => (lookup(data, ['env', name]) === undefined ? [] : [removeKey(['env', name])]),
    });
    const paper = new PaperFile('{"a": 1}');
    paper.install(key('A'));
    paper.install(key('B'));
    paper.remove(key('A'));
    expect(say(paper.text)).toEqual({ a: 1, env: { B: 'x' } });
    paper.remove(key('B'));
    expect(paper.text).toBe('{"a": 1}');
  });
});

describe('undo', () => {
  test('takes back one step after the other', () => {
    const paper = new PaperFile(theirs);
    paper.install(claude);
    const first = paper.text;
    paper.install(upgraded);
    const second = paper.text;
    paper.remove(upgraded);
    expect(paper.text).toBe(theirs);
    expect([paper.undo(), paper.text]).toEqual(['undo', second]);
    expect([paper.undo(), paper.text]).toEqual(['undo', first]);
    expect([paper.undo(), paper.text]).toEqual(['undo', theirs]);
    expect(paper.undo()).toBe('nothing');
  });

  test('keeps what the user changed elsewhere in the file since', () => {
    const paper = new PaperFile(theirs);
    paper.install(claude);
    paper.text = paper.text?.replace('"opus"', '"sonnet", "x": [1]') ?? null;
    expect(paper.undo()).toBe('undo');
    expect(paper.text).toBe(theirs.replace('"opus"', '"sonnet", "x": [1]'));
  });

  test('is refused where the user changed what we wrote', () => {
    const paper = new PaperFile(theirs);
    paper.install(claude);
    const changed = paper.text?.replace('/a/bin', 'nice /a/bin') ?? null;
    paper.text = changed;
    expect(paper.undo()).toBe('changed-since');
    expect(paper.text).toBe(changed);
  });

  test('T1: is refused where a hook behind ours would move', () => {
    const paper = new PaperFile(theirs);
    paper.install(claude);
    const added = plan(paper.text, 'json', [
      appendToArray(['hooks', 'Stop'], { hooks: [{ command: 'new' }] }),
    ]);
    if (added.kind === 'plan') paper.text = added.after;
    expect(paper.undo()).toBe('changed-since');
  });

  test('is refused where the file is gone or broken', () => {
    for (const text of [null, '{']) {
      const paper = new PaperFile(theirs);
      paper.install(claude);
      paper.text = text;
      expect(paper.undo()).toBe('changed-since');
    }
  });

  test('of a file that we made leaves what others put into it', () => {
    const paper = new PaperFile(null);
    paper.install(claude);
    const added = plan(paper.text, 'json', [setValue(['model'], 'opus')]);
    if (added.kind === 'plan') paper.text = added.after;
    expect(paper.undo()).toBe('undo');
    expect(say(paper.text)).toEqual({ model: 'opus' });
  });

  test('a backup that was put back by hand counts as undone', () => {
    const paper = new PaperFile(theirs);
    paper.install(claude);
    paper.text = theirs;
    expect(paper.undo()).toBe('nothing');
  });
});

describe('T: positions in Codex', () => {
  test('T1 C-320: ours goes behind, and the others keep their places', () => {
    for (const format of ['json', 'toml'] as const) {
      const wiring = hooksWiring(format, '/a');
      const start = plan(null, format, [
        appendToArray(['hooks', 'Stop'], { hooks: [{ type: 'command', command: 'A' }] }),
        appendToArray(['hooks', 'Stop'], { hooks: [{ type: 'command', command: 'B' }] }),
      ]);
      if (start.kind !== 'plan') throw new Error(start.message);
      const paper = new PaperFile(start.after);
      paper.install(wiring);
      const read = readData(paper.text, format);
      const groups = read.kind === 'data' ? lookup(read.data, ['hooks', 'Stop']) : undefined;
      expect(groups).toMatchObject([
        { hooks: [{ command: 'A' }] },
        { hooks: [{ command: 'B' }] },
        { hooks: [{ command: '/a/shadowob-connector hook --agent claude' }] },
      ]);
    }
  });

  test('S-823 C-325: a removal that leaves an empty group in our place is done as asked, not as before', () => {
    const wiring = {
      ...hooksWiring('json', '/a'),
      remove: () => [setValue(['hooks', 'Stop', 0, 'hooks'], [])],
    };
    const paper = new PaperFile('{"hooks": {"Stop": []}}');
    paper.install(wiring);
    const added = plan(paper.text, 'json', [appendToArray(['hooks', 'Stop'], { hooks: [{ command: 'B' }] })]);
    if (added.kind === 'plan') paper.text = added.after;
    paper.remove(wiring);
    expect(lookup(say(paper.text), ['hooks', 'Stop'])).toEqual([
      { hooks: [] },
      { hooks: [{ command: 'B' }] },
    ]);
  });

  test('T5: hooks that are all there are not written again', () => {
    const paper = new PaperFile(theirs);
    paper.install(claude);
    expect(paper.install(claude)).toBe('nothing');
  });
});

describe('operations on lists', () => {
  test('S-813: an item is taken out from between others', () => {
    const text = '{\n  "a": [\n    1, // one\n    2, // two\n    3\n  ]\n}\n';
    const expected = '{\n  "a": [\n    1, // one\n    // two\n    3\n  ]\n}\n';
    expect(plan(text, 'jsonc', [removeFromArray(['a'], 1)])).toMatchObject({ after: expected });
  });

  test('an index that is not there is refused', () => {
    expect(plan('{"a": [1]}', 'json', [removeFromArray(['a'], 1)])).toMatchObject({ code: 'misfit' });
    expect(plan('{"a": {}}', 'json', [removeFromArray(['a'], 0)])).toMatchObject({ code: 'misfit' });
    expect(plan('{}', 'json', [removeFromArray(['a'], 0)])).toMatchObject({ code: 'misfit' });
  });
});
