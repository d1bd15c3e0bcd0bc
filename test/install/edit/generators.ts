/** Valid files with every kind of foreign content in them, for each format. */
import fc from 'fast-check';

const BREAKS = ['\n', '\r\n'] as const;

/** One kind of line end for most files, both for some. */
const lineBreaks = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...BREAKS).map((one) => [one]) },
  { weight: 1, arbitrary: fc.constant([...BREAKS]) },
);

/** Marks a line end in generated text; made into a real one at the end. */
const NL = '\u0001';

function withBreaks(text: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .tuple(text, lineBreaks, fc.infiniteStream(fc.nat(1)))
    .map(([marked, kinds, choices]) =>
      marked.replaceAll(NL, () => kinds[(choices.next().value ?? 0) % kinds.length] ?? '\n'),
    );
}

const withMark = (text: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.tuple(fc.boolean(), text).map(([mark, rest]) => (mark ? `\ufeff${rest}` : rest));

// ---------------------------------------------------------------------------------------------- JSON

const TEXTS = [
  '',
  'a b',
  '\\u00e9\\ud83d\\ude00',
  '\\\\\\"',
  '// no comment',
  '/* nor this */',
  ',]}',
  '漢字',
  '\\u0000',
];
const NUMBERS = ['0', '-0', '1.50', '1e400', '9007199254740993', '-123456789012345678901234567890', '0.1E-7'];

const jsonText = fc.oneof(
  fc.constantFrom(...TEXTS).map((text) => `"${text}"`),
  fc.string({ unit: 'binary', maxLength: 6 }).map((text) => JSON.stringify(text)),
);

interface JsonOptions {
  readonly comments: boolean;
  readonly trailingCommas: boolean;
  readonly json5: boolean;
}

function jsonParts(options: JsonOptions) {
  const blanks = ['', '', '', ' ', '  ', '\t', NL, `${NL}  `, `${NL}\t\t`, `${NL}${NL}`];
  const notes = [
    `// it's a "note"${NL}`,
    `${NL}  // line, ]}${NL}`,
    '/* a, b */',
    `/* two${NL} lines */`,
    '/**/',
  ];
  const gap = fc.constantFrom(...blanks, ...(options.comments ? notes : []));
  const scalar = fc.oneof(
    jsonText,
    fc.constantFrom('null', 'true', 'false', ...NUMBERS),
    ...(options.json5
      ? [fc.constantFrom('\'it is "x"\'', '.5', '+1', '0xFF', 'Infinity', '-NaN', "'\\x41\\'\\\n'")]
      : []),
  );
  const list = (open: string, close: string, items: fc.Arbitrary<readonly string[]>) =>
    fc.tuple(items, gap, fc.boolean()).map(([all, end, tail]) => {
      const comma = options.trailingCommas && tail && all.length > 0 ? ',' : '';
      return `${open}${all.join(',')}${comma}${end}${close}`;
    });
  const key = options.json5
    ? fc.oneof(jsonText, fc.constantFrom('unquoted', '$a_1', "'single'", 'ключ'))
    : jsonText;
  const entry = (keys: fc.Arbitrary<string>, value: fc.Arbitrary<string>) =>
    fc.tuple(gap, keys, gap, gap, value, gap).map(([a, k, b, c, v, d]) => `${a}${k}${b}:${c}${v}${d}`);
  const { value } = fc.letrec<{ value: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      scalar,
      list(
        '[',
        ']',
        fc.array(
          fc.tuple(gap, tie('value'), gap).map((parts) => parts.join('')),
          { maxLength: 3 },
        ),
      ),
      list('{', '}', fc.array(entry(key, tie('value')), { maxLength: 3 })),
    ),
  }));
  return { gap, list, entry, key, value };
}

/** A JSON file; some have hooks of their own, in the shape that programs read. */
export function jsonFile(options: JsonOptions): fc.Arbitrary<string> {
  const { gap, list, entry, key, value } = jsonParts(options);
  const handler = fc.constantFrom(
    '{"type":"command","command":"theirs"}',
    '{"command": "x", "timeout": 1.0}',
    '{}',
  );
  const handlers = list(
    '[',
    ']',
    fc.array(
      fc.tuple(gap, handler, gap).map((parts) => parts.join('')),
      { maxLength: 2 },
    ),
  );
  const group = list(
    '{',
    '}',
    fc.tuple(entry(fc.constant('"matcher"'), jsonText), entry(fc.constant('"hooks"'), handlers)),
  );
  const groups = list(
    '[',
    ']',
    fc.array(
      fc.tuple(gap, group, gap).map((parts) => parts.join('')),
      { maxLength: 2 },
    ),
  );
  const events = fc.array(
    entry(fc.constantFrom('"Stop"', '"PreToolUse"', '"\\u0053top"', '"Other"'), groups),
    { maxLength: 3 },
  );
  const hooks = entry(fc.constantFrom('"hooks"', '"h\\u006foks"'), list('{', '}', events));
  const marker = entry(fc.constant('"marker"'), fc.constant('"MARK1"'));
  const foreign = fc.array(entry(key, value), { maxLength: 4 });
  const entries = fc
    .tuple(foreign, fc.option(hooks, { nil: undefined }), foreign, fc.option(marker, { nil: undefined }))
    .map(([a, b, c, d]) => [...a, ...(b === undefined ? [] : [b]), ...c, ...(d === undefined ? [] : [d])]);
  const root = fc.tuple(gap, list('{', '}', entries), gap).map((parts) => parts.join(''));
  const blank = fc.constantFrom('', NL, ' ', ...(options.comments ? [`// only a note${NL}`, '/* x */'] : []));
  return withMark(withBreaks(fc.oneof({ weight: 8, arbitrary: root }, { weight: 1, arbitrary: blank })));
}

// ---------------------------------------------------------------------------------------------- TOML

const TOML_VALUES = [
  '"text # no comment"',
  "'literal \\'",
  `"""${NL}many "lines"${NL}[not.a.table]${NL}"""`,
  `'''${NL}raw${NL}'''`,
  '9007199254740993',
  '-0xdead'.slice(1),
  '1_000',
  '1.0',
  '6.626e-34',
  'inf',
  'nan',
  'true',
  '1979-05-27T07:32:00Z',
  '1979-05-27',
  '07:32:00',
  '[ 1,2,  3 ]',
  '[]',
  `[${NL}  "a", # one${NL}  "b" # two${NL}]`,
  `[${NL}  [1], # x${NL}  [],${NL}]`,
  '{ a = 1, b.c = "x" }',
  '{}',
] as const;

const tomlNote = fc.constantFrom('', '', '', ' # note', '\t# "quoted" [x]');
const tomlGap = fc.constantFrom('', '', NL, `# a line${NL}`, `  # [commented.table]${NL}${NL}`);

interface TomlPiece {
  readonly at: 'top' | 'table';
  readonly text: string;
}

const tomlLine = (name: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      tomlGap,
      fc.constantFrom('', '  '),
      fc.constantFrom(name, `"${name} é"`, `${name}.b."c d"`),
      fc.constantFrom(' = ', '=', '  =\t'),
      fc.constantFrom(...TOML_VALUES),
      tomlNote,
    )
    .map(([gap, indent, key, equals, value, note]) => `${gap}${indent}${key}${equals}${value}${note}${NL}`);

const tomlLines = (name: string): fc.Arbitrary<string> =>
  fc
    .array(fc.nat(20), { maxLength: 3 })
    .chain((ids) =>
      fc.tuple(...[...new Set(ids)].map((id) => tomlLine(`${name}${id}`))).map((lines) => lines.join('')),
    );

const tomlTable = (index: number): fc.Arbitrary<TomlPiece> =>
  fc
    .tuple(
      tomlGap,
      fc.constantFrom(
        `[t${index}]`,
        `[ t${index} . "sub x" ]`,
        `[t${index}.a.b]`,
        `[[list${index % 2}]]`,
        `[hooks.state."/p:stop:${index}:0"]`,
      ),
      tomlNote,
      tomlLines('k'),
    )
    .map(([gap, header, note, lines]) => ({ at: 'table', text: `${gap}${header}${note}${NL}${lines}` }));

const tomlHook: fc.Arbitrary<TomlPiece> = fc
  .tuple(tomlGap, fc.constantFrom('Stop', 'PreToolUse', 'Other'), tomlNote, tomlNote)
  .map(([gap, event, a, b]) => ({
    at: 'table',
    text: `${gap}[[hooks.${event}]]${a}${NL}matcher = "x"${NL}[[hooks.${event}.hooks]]${b}${NL}command = 'theirs'${NL}`,
  }));

export const tomlFile: fc.Arbitrary<string> = withMark(
  withBreaks(
    fc
      .tuple(
        tomlLines('top'),
        fc.option(fc.constant(`marker = "MARK1" # mine${NL}`), { nil: '' }),
        fc.array(fc.oneof(fc.nat(30).chain(tomlTable), tomlHook), { maxLength: 5 }),
        tomlGap,
        fc.boolean(),
      )
      .map(([top, marker, pieces, tail, open]) => {
        const seen = new Set<string>();
        const tables = pieces
          .filter(({ text }) => {
            // The same table twice is not valid; an array of tables may have several.
            const name = /\[\s*(t\d+)/.exec(text)?.[1] ?? /state\.("[^"]+")/.exec(text)?.[1];
            if (name === undefined) return true;
            const isNew = !seen.has(name);
            seen.add(name);
            return isNew;
          })
          .map(({ text }) => text);
        const text = top + marker + tables.join('') + tail;
        return open && text.endsWith(NL) ? text.slice(0, -1) : text;
      }),
  ),
);

// ---------------------------------------------------------------------------------------------- YAML

const YAML_SCALARS = [
  'plain words # note',
  "'single ''quoted'''",
  '"double\\n\\u00e9"',
  '9007199254740993',
  '0o17',
  '1e3',
  '~',
  'yes',
  '2001-12-14',
  '!!str 12',
  '&anchor value',
  '[a, "b", {c: 1}]',
  `[a,${NL}    b] # over two`,
  '{x: 1, y: [2]}',
  '{}',
  '[]',
  '',
] as const;

const YAML_BLOCKS = [
  ` |${NL}    block # no comment${NL}    more${NL}`,
  ` >-${NL}    folded${NL}    text${NL}`,
  ` |+${NL}    kept${NL}${NL}`,
  `${NL}  - one # c${NL}  - two${NL}  # foot${NL}`,
  `${NL}- indentless${NL}- a: 1${NL}  b: 2${NL}`,
  `${NL}    deep:${NL}        deeper: 1${NL}    other: x # c${NL}`,
  ` &m${NL}  base: 1${NL}`,
  `${NL}  - - nested${NL}    - list${NL}  -${NL}    late: 1${NL}`,
] as const;

const yamlGap = fc.constantFrom('', '', '', NL, `# a line${NL}`, `${NL}# [x]: y${NL}${NL}`);

const yamlPair = (name: string): fc.Arbitrary<string> =>
  fc
    .tuple(
      yamlGap,
      fc.constantFrom(name, `"${name} é"`, `'${name}'`),
      fc.oneof(
        fc.constantFrom(...YAML_SCALARS).map((value) => `${value === '' ? '' : ' '}${value}${NL}`),
        fc.constantFrom(...YAML_BLOCKS),
      ),
    )
    .map(([gap, key, value]) => `${gap}${key}:${value}`);

const YAML_PLUGINS = [
  `plugins:${NL}  enabled:${NL}    - theirs # c${NL}`,
  `plugins:${NL}  enabled: [theirs]${NL}  other: 1${NL}`,
  `plugins: {enabled: [], x: y} # flow${NL}`,
  `plugins:${NL}`,
  `plugins: # nothing yet${NL}  # still nothing${NL}`,
  `plugins:${NL}  enabled:${NL}  - theirs${NL}  - more # x${NL}  # foot${NL}`,
  `platforms:${NL}  slack: {token: x}${NL}`,
  `platforms: {}${NL}`,
  `platforms:${NL}    slack:${NL}        token: |${NL}            x${NL}`,
] as const;

export const yamlFile: fc.Arbitrary<string> = withBreaks(
  fc
    .tuple(
      fc.constantFrom('', '', `---${NL}`, `# top${NL}`),
      fc
        .uniqueArray(fc.nat(30), { maxLength: 4 })
        .chain((ids) => fc.tuple(...ids.map((id) => yamlPair(`k${id}`)))),
      fc.uniqueArray(fc.constantFrom(...YAML_PLUGINS), {
        maxLength: 2,
        selector: (text) => text.slice(0, 7),
      }),
      fc.option(fc.constant(`marker: "MARK1" # mine${NL}`), { nil: '' }),
      fc.option(yamlPair('last'), { nil: '' }),
      yamlGap,
      fc.boolean(),
    )
    .map(([head, pairs, plugins, marker, last, tail, open]) => {
      const text = head + pairs.join('') + plugins.join('') + marker + last + tail;
      // A block scalar at the end would lose its line end, and with it change its value.
      const mayOpen =
        open && text.endsWith(NL) && last === '' && !/[|>][+-]?\n[^:]*$/.test(text.replaceAll(NL, '\n'));
      return mayOpen ? text.slice(0, -1) : text;
    }),
);

// ---------------------------------------------------------------------------------------------- .env

const ENV_LINES = [
  'A=1',
  'export  B="two words" # note',
  `C="over${NL}SHADOWOB_TOKEN=inside${NL}lines"`,
  "D='single # no comment'",
  'E=bare # note',
  'F=',
  ' G = spaced',
  '# SHADOWOB_TOKEN=commented',
  '',
  'not an assignment',
  'H=a=b=c',
  'A=again',
  'export I',
] as const;

export const envFile: fc.Arbitrary<string> = withMark(
  withBreaks(
    fc
      .tuple(
        fc.array(fc.constantFrom(...ENV_LINES), { maxLength: 6 }),
        fc.option(fc.constant('marker=MARK1 # mine'), { nil: undefined }),
        fc.boolean(),
      )
      .map(([lines, marker, open]) => {
        const all = marker === undefined ? lines : [...lines, marker];
        return all.join(NL) + (open || all.length === 0 ? '' : NL);
      }),
  ),
);
