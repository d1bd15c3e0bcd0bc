import { describe, expect, test } from 'bun:test';
import { join } from 'node:path';
import fc from 'fast-check';
import { type Glance, type GlanceRow, readGlance } from '../../src/commands/output/glance.ts';
import { STATUS_FORMATS, statusLine } from '../../src/commands/output/status-formats.ts';
import { readStatusLine } from '../../src/commands/output/status-line.ts';
import { oneLine } from '../../src/runtime/session/text.ts';

const SELF = ['/opt/shadowob connector/shadowob-connector'];
const ID = '0b7e6c1a-2f4d-4a8e-9c3b-5d1e7f9a2b4c';

const row = (more: Partial<GlanceRow> = {}): GlanceRow => ({
  runtimeId: 'claude-code',
  runtime: 'Claude Code',
  sessionId: ID,
  state: 'waiting_for_approval',
  folder: 'shop',
  needsYou: true,
  ...more,
});
const glance = (sessions: readonly GlanceRow[], more: Partial<Glance> = {}): Glance => ({
  ready: true,
  waiting: sessions.filter(({ needsYou }) => needsYou).length,
  working: 0,
  present: sessions.length,
  sessions,
  ...more,
});

/** What a hostile folder or title may hold: everything that means something to one of the programs. */
const nasty = fc.oneof(
  fc.constantFrom(
    'a|b',
    '#[fg=red]',
    '#(reboot)',
    '##[x]',
    '<b>&amp;</b>',
    'a\nb',
    '---',
    '--x',
    '| bash=/bin/sh',
    ':fire:',
    '\u001b[31m',
    '\u202e',
    '\'"`$(id)',
    '%H',
    '\\n',
  ),
  fc.string({ unit: 'binary', maxLength: 30 }),
);
const hostile = fc
  .tuple(nasty, nasty)
  .map(([a, b]) => row({ folder: `x${a}`, title: `y${b}`, window: true }));

describe('status-line', () => {
  test('says who waits, who works, and nothing while all is quiet', () => {
    const two = glance([row(), row({ sessionId: 'b' })], { working: 1 });
    expect(statusLine(two, 'plain', SELF)).toBe('2 waiting · 1 working');
    expect(statusLine(glance([row()]), 'starship', SELF)).toBe('1 waiting (Claude Code · shop)');
    expect(statusLine(two, 'tmux', SELF)).toBe('#[fg=yellow]2 waiting#[default] · 1 working');
    for (const format of ['plain', 'tmux', 'starship'] as const)
      expect(statusLine(glance([]), format, SELF)).toBe('');
    expect(JSON.parse(statusLine(two, 'waybar', SELF))).toEqual({
      text: '2 waiting · 1 working',
      tooltip: '! Claude Code · shop: waiting for approval\n! Claude Code · shop: waiting for approval',
      class: 'waiting',
      alt: 'waiting',
    });
  });

  test('without a daemon: nothing in prompts and bars, a way to start one in menus', () => {
    for (const format of ['plain', 'tmux', 'starship'] as const)
      expect(statusLine(undefined, format, SELF)).toBe('');
    expect(JSON.parse(statusLine(undefined, 'waybar', SELF))).toMatchObject({ text: '', class: 'off' });
    expect(statusLine(undefined, 'xbar', SELF)).toContain(
      'bash="/opt/shadowob connector/shadowob-connector" param1="daemon" param2="start"',
    );
  });

  test('C-355 S-854: only what an editor window shows can be clicked, and only by a plain id', () => {
    const lines = (one: GlanceRow, format: 'swiftbar' | 'argos' = 'swiftbar') =>
      statusLine(glance([one]), format, SELF).split('\n')[2] ?? '';
    expect(lines(row())).not.toContain('bash=');
    expect(lines(row({ window: true }))).toContain(`param1="focus" param2="${ID}" terminal=false`);
    expect(lines(row({ window: true }), 'argos')).toContain(
      `bash="'/opt/shadowob connector/shadowob-connector' 'focus' '${ID}'"`,
    );
    for (const id of ['-rf', 'a b"', "x';id;'", 'a|b'])
      expect(lines(row({ window: true, sessionId: id }))).not.toContain('bash=');
    const states = ['running', 'blocked', 'idle', 'completed'].map((state) =>
      lines(row({ state })).slice(0, 1),
    );
    expect(states).toEqual(['⚙', '?', '◦', '◦']);
  });

  test('tmux: no name becomes a style or a command; what tmux draws is the name', () => {
    fc.assert(
      fc.property(hostile, (one) => {
        const line = statusLine(glance([one]), 'tmux', SELF);
        const inner = line.slice('#[fg=yellow]'.length, line.length - '#[default]'.length);
        // Every `#` is doubled, so none begins anything.
        expect(inner.replaceAll('##', '')).not.toContain('#');
        expect(inner.replaceAll('##', '#')).toBe(
          oneLine(`1 waiting (Claude Code · ${one.folder} · ${one.title})`),
        );
        expect(line).not.toContain('\n');
      }),
    );
  });

  test('waybar: one line of JSON whose texts are the names once their markup is read', () => {
    const readMarkup = (text: string) =>
      text
        .replaceAll('&lt;', '<')
        .replaceAll('&gt;', '>')
        .replaceAll('&quot;', '"')
        .replaceAll('&#39;', "'")
        .replaceAll('&amp;', '&');
    fc.assert(
      fc.property(fc.array(hostile, { minLength: 1, maxLength: 3 }), (rows) => {
        const line = statusLine(glance(rows), 'waybar', SELF);
        expect(line).not.toContain('\n');
        const { tooltip, text } = JSON.parse(line) as { tooltip: string; text: string };
        for (const shown of [tooltip, text]) expect(shown).not.toMatch(/[<>"']|&(?!amp;|lt;|gt;|quot;|#39;)/);
        expect(tooltip.split('\n').map(readMarkup)).toEqual(
          rows.map((one) => oneLine(`! Claude Code · ${one.folder} · ${one.title}: waiting for approval`)),
        );
      }),
    );
  });

  test('menus: a line a session, one set of parameters a line, and nothing of a name among them', () => {
    fc.assert(
      fc.property(
        fc.array(hostile, { minLength: 1, maxLength: 3 }),
        fc.constantFrom('swiftbar', 'xbar', 'argos'),
        (rows, format) => {
          const lines = statusLine(glance(rows), format, SELF).split('\n');
          expect(lines).toHaveLength(2 + rows.length);
          expect(lines[1]).toBe('---');
          for (const [i, one] of rows.entries()) {
            const parts = (lines[2 + i] ?? '').split('|');
            expect(parts).toHaveLength(2);
            const name = oneLine(`! Claude Code · ${one.folder} · ${one.title}: waiting for approval`);
            expect(parts[0]).toBe(`${name.replaceAll('|', '❘')} `);
            expect(parts[1]).toStartWith(' emojize=false ');
            expect(parts[1]).toContain(ID);
          }
        },
      ),
    );
  });

  test('starship and plain: one line without control characters', () => {
    fc.assert(
      fc.property(hostile, fc.constantFrom('plain', 'starship'), (one, format) => {
        expect(statusLine(glance([one]), format, SELF)).not.toMatch(/\p{Cc}|\u202e|\u2028/u);
      }),
    );
  });

  test('whatever answers on the socket, the line is made or the fallback is', () => {
    const reply = fc.oneof(
      fc.json(),
      fc.string(),
      fc.json().map((text) => `{"ok":true,"payload":${text}}`),
    );
    fc.assert(
      fc.property(reply, fc.constantFrom(...STATUS_FORMATS), (text, format) => {
        expect(typeof statusLine(readGlance(text), format, SELF)).toBe('string');
      }),
    );
    const good = {
      ready: true,
      waiting: 1,
      working: -1,
      present: 'x',
      sessions: [row(), { runtimeId: 1 }, null],
    };
    expect(readGlance(JSON.stringify({ ok: true, payload: good }))).toEqual(glance([row()], { present: 0 }));
    expect(readGlance(JSON.stringify({ ok: true, payload: { ...good, ready: false } }))).toBeUndefined();
    expect(readGlance('{"ok":false}')).toBeUndefined();
  });
});

describe('the short way', () => {
  test('takes its own words, and leaves everything else to the command', () => {
    expect(readStatusLine([])).toEqual({ format: 'plain', titles: false, socket: undefined });
    expect(readStatusLine(['--format', 'tmux', '--titles', '--socket=/x'])).toEqual({
      format: 'tmux',
      titles: true,
      socket: '/x',
    });
    for (const words of [['--help'], ['--json'], ['--format'], ['--format', 'none'], ['x'], ['--format=']])
      expect([words, readStatusLine(words)]).toEqual([words, undefined]);
  });

  test('imports next to nothing: no schema library, no adapter, nothing of the service', async () => {
    const root = join(import.meta.dir, '..', '..');
    const built = await Bun.build({
      entrypoints: [join(root, 'src', 'commands', 'output', 'status-line.ts')],
      target: 'bun',
      metafile: true,
    } as never);
    const inputs = Object.keys(
      (built as { metafile?: { inputs: Record<string, unknown> } }).metafile?.inputs ?? {},
    );
    expect(inputs.length).toBeGreaterThan(5);
    expect(
      inputs.filter((path) =>
        /node_modules|adapters\/|daemon\/(server|client|protocol|sessions|clock)|config\//.test(path),
      ),
    ).toEqual([]);
  });
});
