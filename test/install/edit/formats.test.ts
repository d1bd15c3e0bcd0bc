import { describe, expect, test } from 'bun:test';
import type { FormatId } from '../../../src/install/edit/document.ts';
import {
  appendToArray,
  ensureObject,
  type Operation,
  removeFromArray,
  removeKey,
  replaceInArray,
  setValue,
} from '../../../src/install/edit/operation.ts';
import { plan } from '../../../src/install/edit/plan.ts';

interface Row {
  readonly given: string;
  readonly format: FormatId;
  readonly before: string | null;
  readonly operations: readonly Operation[];
  readonly after: string;
}

const hook = { hooks: [{ type: 'command', command: '/x' }] };

const rows: readonly Row[] = [
  {
    given: 'S-801: a missing file is an empty object',
    format: 'json',
    before: null,
    operations: [setValue(['a', 'b'], 1)],
    after: '{\n  "a": {\n    "b": 1\n  }\n}\n',
  },
  {
    given: 'S-801: a blank file is an empty object, and keeps its mark',
    format: 'json',
    before: '\ufeff',
    operations: [setValue(['a'], 1)],
    after: '\ufeff{\n  "a": 1\n}\n',
  },
  {
    given: 'S-802: tabs, CRLF and a missing last line end stay',
    format: 'json',
    before: '{\r\n\t"a": 1\r\n}',
    operations: [setValue(['b'], [true])],
    after: '{\r\n\t"a": 1,\r\n\t"b": [\r\n\t\ttrue\r\n\t]\r\n}',
  },
  {
    given: 'minified JSON stays minified',
    format: 'json',
    before: '{"a":1,"hooks":{"Stop":[]}}',
    operations: [appendToArray(['hooks', 'Stop'], hook)],
    after: '{"a":1,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"/x"}]}]}}',
  },
  {
    given: 'a comment behind the last item stays with it',
    format: 'jsonc',
    before: '{\n  "a": [\n    1 // one\n  ]\n}\n',
    operations: [appendToArray(['a'], 2)],
    after: '{\n  "a": [\n    1, // one\n    2\n  ]\n}\n',
  },
  {
    given: 'a comma behind the last item is a habit',
    format: 'jsonc',
    before: '{\n  "a": [\n    1, // one\n  ], // a\n}\n',
    operations: [appendToArray(['a'], 2), setValue(['b'], 3)],
    after: '{\n  "a": [\n    1, // one\n    2,\n  ], // a\n  "b": 3,\n}\n',
  },
  {
    given: 'comments in an empty list stay',
    format: 'jsonc',
    before: '{\n  "a": [\n    // none\n  ],\n  "b": [ /* none */ ]\n}\n',
    operations: [appendToArray(['a'], 1), appendToArray(['b'], 1)],
    after: '{\n  "a": [\n    // none\n    1\n  ],\n  "b": [ /* none */  1 ]\n}\n',
  },
  {
    given: 'of what is removed, the comments beside it stay',
    format: 'jsonc',
    before: '{\n  // above\n  "a": 1, // beside\n  "b": /* in */ 2\n}\n',
    operations: [removeKey(['b']), removeKey(['a'])],
    after: '{\n  // above\n   // beside\n}\n',
  },
  {
    given: 'case 17: OpenClaw keys without quotes, single quotes, comments and commas',
    format: 'json5',
    before: "{\n  // mine\n  channels: { slack: { token: 'x', }, }, // c\n  n: 0xFF,\n}\n",
    operations: [setValue(['channels', 'shadowob', 'enabled'], true), setValue(['n'], 255)],
    after:
      '{\n  // mine\n  channels: { slack: { token: \'x\', }, "shadowob": {"enabled": true}, }, // c\n  n: 0xFF,\n}\n',
  },
  {
    given: 'of duplicate keys the last one counts',
    format: 'json',
    before: '{"a": {"x": 1}, "a": {"y": 1}}',
    operations: [setValue(['a', 'z'], 1)],
    after: '{"a": {"x": 1}, "a": {"y": 1, "z": 1}}',
  },
  {
    given: 'S-812: a stale value is replaced in its place, and no more of it than differs',
    format: 'jsonc',
    before: '{"a": [{"command": "/old" /* c */, "timeout": 5}, 7]}',
    operations: [replaceInArray(['a'], 0, { command: '/new', timeout: 5 })],
    after: '{"a": [{"command": "/new" /* c */, "timeout": 5}, 7]}',
  },
  {
    given: 'case 18: TOML comments, CRLF and whole numbers beyond 2^53',
    format: 'toml',
    before: 'big = 9007199254740993 # exact\r\nday = 1979-05-27\r\n\r\n# the rest\r\n[x]\r\n',
    operations: [setValue(['model'], 'm'), setValue(['x', 'y'], 1)],
    after:
      'big = 9007199254740993 # exact\r\nday = 1979-05-27\r\nmodel = "m"\r\n\r\n# the rest\r\n[x]\r\ny = 1\r\n',
  },
  {
    given: 'a hook in config.toml goes behind the others, and its table stands apart',
    format: 'toml',
    before: '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = "theirs" # c\n\n# tui\n[tui]\n',
    operations: [appendToArray(['hooks', 'Stop'], hook)],
    after:
      '[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ncommand = "theirs" # c\n\n[[hooks.Stop]]\n\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "/x"\n\n# tui\n[tui]\n',
  },
  {
    given: 'a table of the first project stays in the first project',
    format: 'toml',
    before: '[[projects]]\nname = "a"\n\n[[projects]]\nname = "b"\n',
    operations: [setValue(['projects', 0, 'agent', 'type'], 'codex')],
    after: '[[projects]]\nname = "a"\n\n[projects.agent]\ntype = "codex"\n\n[[projects]]\nname = "b"\n',
  },
  {
    given: 'TOML dotted keys, inline tables and lists over several lines keep their form',
    format: 'toml',
    before: 'a.b = 1\nc = { d = 1 }\ne = [\n  1, # one\n]\n',
    operations: [setValue(['a', 'x'], 2), setValue(['c', 'x'], 2), appendToArray(['e'], 2)],
    after: 'a.b = 1\na.x = 2\nc = { d = 1, x = 2 }\ne = [\n  1, # one\n  2,\n]\n',
  },
  {
    given: 'the last table of an array takes the array with it',
    format: 'toml',
    before: 'a = 1\n\n[[p]]\nname = "x"\n[p.q]\nr = 1\n\n[z]\n',
    operations: [removeFromArray(['p'], 0)],
    after: 'a = 1\n\n[z]\n',
  },
  {
    given: 'YAML comments, indentation without a step, and an empty section',
    format: 'yaml',
    before: '# top\nplugins:\n  enabled:\n  - a   # first\n  # foot\nplatforms:   # none yet\nz: 1\n',
    operations: [
      appendToArray(['plugins', 'enabled'], 'shadowob'),
      setValue(['platforms', 's', 'enabled'], true),
    ],
    after:
      '# top\nplugins:\n  enabled:\n  - a   # first\n  - shadowob\n  # foot\nplatforms:   # none yet\n  s:\n    enabled: true\nz: 1\n',
  },
  {
    given: 'YAML flow collections stay flow, anchors stay',
    format: 'yaml',
    before: 'a: &d {x: 1} # c\nb: [1, 2]\n',
    operations: [setValue(['a', 'w'], 'two words'), appendToArray(['b'], 3)],
    after: 'a: &d {x: 1, w: "two words"} # c\nb: [1, 2, 3]\n',
  },
  {
    given: 'a YAML list that loses its only item says so',
    format: 'yaml',
    before: 'a:\n  - x\nb: 1\n',
    operations: [removeFromArray(['a'], 0)],
    after: 'a: []\nb: 1\n',
  },
  {
    given: 'a folded YAML text that comes to stand last keeps the line end that is its own',
    format: 'yaml',
    before: 'k13: >-\r\n    folded\r\n    text\r\n"k10 é": 1e3',
    operations: [removeKey(['k10 é']), setValue(['new'], {})],
    after: 'k13: >-\r\n    folded\r\n    text\r\nnew: {}\r\n',
  },
  {
    given: 'a YAML text in a list that comes to stand last keeps it too',
    format: 'yaml',
    before: 'a:\n  - |\n    text\n  - last',
    operations: [removeFromArray(['a'], 1)],
    after: 'a:\n  - |\n    text\n',
  },
  {
    given: 'case 19: a key inside a quoted value over several lines is no key',
    format: 'env',
    before:
      'NOTE="over\nSHADOWOB_TOKEN=inside\n"\nexport SHADOWOB_TOKEN=old # keep\nSHADOWOB_ALLOW_ALL_USERS=false\n',
    operations: [
      setValue(['SHADOWOB_TOKEN'], 'new value'),
      setValue(['SHADOWOB_SERVER_URL'], 'https://x.test'),
    ],
    after:
      'NOTE="over\nSHADOWOB_TOKEN=inside\n"\nexport SHADOWOB_TOKEN=\'new value\' # keep\nSHADOWOB_ALLOW_ALL_USERS=false\nSHADOWOB_SERVER_URL=https://x.test\n',
  },
];

describe('edits to the byte', () => {
  test.each([...rows])('$format: $given', ({ format, before, operations, after }) => {
    expect(plan(before, format, operations)).toMatchObject({ kind: 'plan', after });
  });

  test.each([...rows])('again, nothing: $format: $given', ({ format, operations, after }) => {
    const lasting = operations.filter(({ kind }) => kind === 'setValue' || kind === 'removeKey');
    expect(plan(after, format, lasting)).toMatchObject({ kind: 'plan', after, edits: [] });
  });
});

interface Refused {
  readonly given: string;
  readonly format: FormatId;
  readonly before: string;
  readonly operations?: readonly Operation[];
  readonly refusal: { readonly code: string; readonly message: string; readonly line?: number };
}

const set = [setValue(['a', 'b'], 1)];

const refusals: readonly Refused[] = [
  {
    given: 'H1 R-23: a comment, where the program would ignore the whole file for it',
    format: 'json',
    before: '{\n  // x\n  "hooks": {} }',
    refusal: { code: 'dialect', message: 'has a comment, which is not strict JSON', line: 2 },
  },
  {
    given: 'a comma behind the last item of strict JSON',
    format: 'json',
    before: '{"a": [1,]}',
    refusal: {
      code: 'dialect',
      message: 'has a comma behind the last item, which is not strict JSON',
      line: 1,
    },
  },
  {
    given: 'an unquoted key in a file that VS Code reads',
    format: 'jsonc',
    before: '{\n a: 1 }',
    refusal: { code: 'dialect', message: 'has a key without quotes, which is not strict JSON', line: 2 },
  },
  {
    given: 'C-307: not JSON',
    format: 'json',
    before: 'not json',
    refusal: { code: 'invalid', message: 'has a word where a value is due', line: 1 },
  },
  {
    given: 'C-307: a list',
    format: 'json',
    before: '[1]',
    refusal: { code: 'shape', message: 'is not an object' },
  },
  {
    given: 'C-307: a text',
    format: 'json',
    before: '"x"',
    refusal: { code: 'shape', message: 'is not an object' },
  },
  {
    given: 'S-803 C-307: another shape is not repaired',
    format: 'json',
    before: '{"a": 5}',
    refusal: { code: 'misfit', message: 'has another shape: a is a single value, not an object' },
  },
  {
    given: 'the end is missing',
    format: 'json5',
    before: '{a: [1',
    refusal: { code: 'invalid', message: 'lacks a comma or a closing bracket', line: 1 },
  },
  {
    given: 'a key that would come to count when a later one goes',
    format: 'json',
    before: '{"a": 1, "a": 2}',
    operations: [removeKey(['a'])],
    refusal: { code: 'cannot', message: 'cannot be edited at a: it has this key more than once' },
  },
  {
    given: 'no JSON value',
    format: 'json',
    before: '{}',
    operations: [setValue(['a'], Number.NaN)],
    refusal: { code: 'cannot', message: 'cannot be edited at a: it cannot hold this value' },
  },
  {
    given: 'broken TOML',
    format: 'toml',
    before: 'a = 1\na = 2\n',
    refusal: { code: 'invalid', message: 'is not valid TOML', line: 2 },
  },
  {
    given: 'TOML has no null',
    format: 'toml',
    before: '',
    operations: [setValue(['a'], null)],
    refusal: { code: 'cannot', message: 'cannot be edited at a: it cannot hold this value' },
  },
  {
    given: 'YAML with several documents',
    format: 'yaml',
    before: 'a: 1\n---\nb: 1\n',
    refusal: { code: 'documents', message: 'has more than one document', line: 2 },
  },
  {
    given: 'broken YAML',
    format: 'yaml',
    before: 'ok: 1\na: [1\n',
    refusal: { code: 'invalid', message: 'is not valid YAML' },
  },
  {
    given: 'a YAML map that is repeated elsewhere would change there too',
    format: 'yaml',
    before: 'a: &x\n  c: 1\nz: *x\n',
    refusal: { code: 'cannot', message: 'cannot be edited at a.b: it is repeated elsewhere by an alias' },
  },
  {
    given: 'a YAML alias has no place of its own',
    format: 'yaml',
    before: 'z: &x\n  c: 1\na: *x\n',
    refusal: {
      code: 'cannot',
      message: 'cannot be edited at a.b: it is not written as a map here (it may be an alias)',
    },
  },
  {
    given: 'a YAML map that takes keys from elsewhere',
    format: 'yaml',
    before: 'z: &x\n  c: 1\na:\n  <<: *x\n',
    refusal: { code: 'cannot', message: 'cannot be edited at a.b: it takes keys from elsewhere with `<<`' },
  },
  {
    given: 'aliases that grow beyond measure',
    format: 'yaml',
    before: `a: &a0 [x]\n${Array.from({ length: 12 }, (_, index) => `k${index}: &a${index + 1} [${`*a${index},`.repeat(9)}]\n`).join('')}`,
    refusal: { code: 'invalid', message: 'has aliases that contain themselves or grow too large' },
  },
  {
    given: 'a quote in .env that does not close',
    format: 'env',
    before: 'A=1\nB="x\n',
    operations: [setValue(['A'], '2')],
    refusal: { code: 'invalid', message: 'has quotes that do not close', line: 2 },
  },
  {
    given: 'a value that readers of .env would each read differently',
    format: 'env',
    before: '',
    operations: [setValue(['A'], 'x$' + '{HOME}')],
    refusal: {
      code: 'cannot',
      message: 'cannot be edited at A: it cannot hold this value in a way that all its readers agree on',
    },
  },
];

describe('refusals, with the reason', () => {
  test.each([...refusals])('$format: $given', ({ format, before, operations = set, refusal }) => {
    expect(plan(before, format, operations)).toMatchObject({ kind: 'refused', ...refusal });
  });

  const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);

  test.each([
    ['jsonc', `{"a":${nested(100_000)}}`],
    ['toml', `a = ${nested(400)}`],
    ['toml', `a = ${nested(100_000)}`],
    ['yaml', `a: ${nested(400)}`],
  ] as const)('%s: nesting that would exhaust the stack is refused', (format, deep) => {
    expect(plan(deep, format, set)).toMatchObject({ code: 'invalid', message: 'is nested too deeply' });
  });

  test('a plan is whole or not at all: one refused operation refuses all', () => {
    expect(plan('{"b": 5}', 'json', [setValue(['a'], 1), setValue(['b', 'c'], 1)])).toMatchObject({
      kind: 'refused',
      code: 'misfit',
    });
  });
});

describe('what to do by hand (S-841, R-23)', () => {
  test('lines to paste, as they would stand alone in the file', () => {
    const refused = plan('{ // x\n}', 'json', [setValue(['claudeCode.claudeProcessWrapper'], '/shim')]);
    expect(refused).toMatchObject({
      byHand: { paste: '{\n  "claudeCode.claudeProcessWrapper": "/shim"\n}\n', steps: [] },
    });
  });

  test('in the language of the file', () => {
    const toml = plan('a =', 'toml', [appendToArray(['hooks', 'Stop'], hook)]);
    expect(toml).toMatchObject({
      byHand: { paste: '[[hooks.Stop]]\n\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "/x"\n' },
    });
    const yaml = plan('a: [', 'yaml', [
      ensureObject(['p']),
      appendToArray(['plugins', 'enabled'], 'shadowob'),
    ]);
    expect(yaml).toMatchObject({ byHand: { paste: 'p: {}\nplugins:\n  enabled:\n    - shadowob\n' } });
  });

  test('steps for what has no lines of its own', () => {
    const refused = plan('[', 'json', [
      removeKey(['a', 'b.c']),
      removeFromArray(['hooks', 'Stop'], 1),
      replaceInArray(['hooks', 'Stop'], 0, { x: [1] }),
      setValue(['hooks', 'Stop', 0, 'command'], '/new'),
    ]);
    expect(refused).toMatchObject({
      byHand: {
        paste: undefined,
        steps: [
          'remove a."b.c"',
          'remove hooks.Stop[1]',
          'set hooks.Stop[0] to {"x": [1]}',
          'set hooks.Stop[0].command to "/new"',
        ],
      },
    });
  });
});
