import { afterEach, describe, expect, test } from 'bun:test';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readValue, SETTINGS, settingOf } from '../../../src/runtime/config/keys.ts';
import { followConfig } from '../../../src/runtime/config/live.ts';
import { configPathIn } from '../../../src/runtime/config/path.ts';
import { readConfig } from '../../../src/runtime/config/read.ts';
import { configSchema, DEFAULT_CONFIG } from '../../../src/runtime/config/schema.ts';
import { sessionWithTitles, showTitle } from '../../../src/runtime/config/titles.ts';
import { webhookProblem } from '../../../src/runtime/config/webhook-url.ts';
import { CONFIG } from '../../../src/runtime/limits.ts';
import { sessionRow } from '../../../src/runtime/session/row.ts';
import { createCleanup, createFakeTime, tempFolder } from '../daemon/harness.ts';
import { session } from '../notify/sessions.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

function homeWith(text: string | undefined): string {
  const home = tempFolder(cleanup);
  if (text !== undefined) writeFileSync(configPathIn(home), text);
  return home;
}

describe('config.json (R-38)', () => {
  test('without a file, and with an empty one, the defaults hold; notifications are off (R-25)', () => {
    for (const text of [undefined, '', ' \n', '{}', '{"notifications":{"sinks":{}}}']) {
      const read = readConfig(homeWith(text));
      expect([text, read.invalid, read.problem]).toEqual([text, false, undefined]);
      expect(read.config).toEqual(DEFAULT_CONFIG);
    }
    expect(DEFAULT_CONFIG.notifications.enabled).toBe(false);
    expect(DEFAULT_CONFIG.notifications.shellPatienceMinutes).toBe(10);
    expect(DEFAULT_CONFIG.daemon.log_level).toBe('info');
  });

  test('comments and trailing commas are allowed', () => {
    const read = readConfig(homeWith('{\n  // at night\n  "privacy": { "titles": "short", },\n}'));
    expect(read).toMatchObject({ invalid: false, config: { privacy: { titles: 'short' } } });
  });

  test('a file that is no use is kept, named, and run with defaults; the value itself is not repeated', () => {
    const cases = [
      '{',
      '[]',
      '"text"',
      '{"privacy":{"titles":"loud-secret"}}',
      '{"notifications":{"enabled":"loud-secret"}}',
      '{"notifications":{"quietHours":[{"from":"25:00","to":"07:00"}]}}',
      '{"notifications":{"quietHours":[{"from":"07:00","to":"07:00"}]}}',
      '{"notifications":{"quietHours":[{"from":"07:00","to":"08:00","timeZone":"Mars/loud-secret"}]}}',
      '{"notifications":{"sinks":{"webhook":{"url":"http://example.test/loud-secret"}}}}',
      ' '.repeat(CONFIG.fileBytes + 1),
      '\u0000',
    ];
    for (const text of cases) {
      const home = homeWith(text);
      const read = readConfig(home);
      expect([text.slice(0, 60), read.invalid]).toEqual([text.slice(0, 60), true]);
      expect(read.config).toEqual(DEFAULT_CONFIG);
      expect(read.problem).toStartWith(`${configPathIn(home)} `);
      expect(read.problem).not.toContain('loud-secret');
      expect(readFileSync(configPathIn(home), 'utf8')).toBe(text);
    }
    const folder = tempFolder(cleanup);
    mkdirSync(configPathIn(folder));
    expect(readConfig(folder).invalid).toBe(true);
  });

  test('a key that we don’t know is named, and the rest holds', () => {
    const read = readConfig(
      homeWith('{"notificatons":{"enabled":true},"privacy":{"titles":"hidden","colour":1}}'),
    );
    expect(read).toMatchObject({ invalid: false, config: { privacy: { titles: 'hidden' } } });
    expect(read.problem).toContain('notificatons');
    expect(read.problem).toContain('privacy.colour');
  });

  test('a process that lives on follows the file, also its coming and going', async () => {
    const home = homeWith(undefined);
    const time = createFakeTime();
    const live = followConfig(home, time);
    const seen: string[] = [];
    live.onChange(() => seen.push(live.current().config.privacy.titles));
    await time.advance(10 * CONFIG.lookMs);
    expect(seen).toEqual([]);
    writeFileSync(configPathIn(home), '{"privacy":{"titles":"short"}}');
    await time.advance(CONFIG.lookMs);
    writeFileSync(configPathIn(home), '{"privacy":{"titles":"hidden"} }');
    await time.advance(CONFIG.lookMs);
    rmSync(configPathIn(home));
    await time.advance(CONFIG.lookMs);
    expect(seen).toEqual(['short', 'hidden', 'full']);
    live.stop();
    writeFileSync(configPathIn(home), '{}');
    await time.advance(CONFIG.lookMs);
    expect(seen).toHaveLength(3);
  });
});

describe('settings by name', () => {
  test('every setting has a name of its own, and its default is a value that the schema takes', () => {
    expect(new Set(SETTINGS.map(({ key }) => key)).size).toBe(SETTINGS.length);
    for (const setting of SETTINGS) {
      const text = typeof setting.fallback === 'string' ? setting.fallback : JSON.stringify(setting.fallback);
      expect([setting.key, readValue(setting, text).kind]).toEqual([setting.key, 'value']);
    }
  });

  test('a value is a word where a word is meant, JSON elsewhere, and quiet hours as people write them', () => {
    const value = (key: string, text: string) => {
      const setting = settingOf(key);
      return setting && readValue(setting, text);
    };
    expect(value('privacy.titles', 'short')).toEqual({ kind: 'value', value: 'short' });
    expect(value('privacy.titles', 'true')?.kind).toBe('bad');
    expect(value('notifications.enabled', 'true')).toEqual({ kind: 'value', value: true });
    expect(value('notifications.enabled', 'yes')?.kind).toBe('bad');
    expect(value('notifications.shellPatienceMinutes', '5')).toEqual({ kind: 'value', value: 5 });
    expect(value('notifications.shellPatienceMinutes', '-5')?.kind).toBe('bad');
    expect(value('notifications.quietHours', '22:00-07:00, 12:30-13:00')).toEqual({
      kind: 'value',
      value: [
        { from: '22:00', to: '07:00' },
        { from: '12:30', to: '13:00' },
      ],
    });
    expect(value('notifications.quietHours', '22:00')?.kind).toBe('bad');
    expect(value('notifications.sinks.command.argv', '["a","b c"]')).toEqual({
      kind: 'value',
      value: ['a', 'b c'],
    });
    expect(value('notifications.sinks.command.argv', 'a b')?.kind).toBe('bad');
    expect(settingOf('notifications')).toBeUndefined();
    expect(settingOf('__proto__')).toBeUndefined();
  });

  test('R-37: a webhook is https, or stays on this computer', () => {
    for (const url of [
      '',
      'https://example.test/x',
      'http://127.0.0.1:9/x',
      'http://localhost/',
      'http://[::1]:1/',
    ])
      expect([url, webhookProblem(url)]).toEqual([url, undefined]);
    for (const url of [
      'http://example.test/',
      'http://127.0.0.1.example.test/',
      'http://localhost.example.test/',
      'ftp://127.0.0.1/',
      'file:///etc/passwd',
      'https://me:secret@example.test/',
      'example.test',
      'http://10.0.0.1/',
    ])
      expect([url, typeof webhookProblem(url)]).toEqual([url, 'string']);
    expect(
      configSchema.safeParse({ notifications: { sinks: { webhook: { url: 'http://x.test' } } } }).success,
    ).toBe(false);
  });
});

describe('privacy.titles (R-37)', () => {
  const title = 'Refactor the billing of the shop and its tests';

  test('as it is, cut to a few words, or not at all', () => {
    const whole = { title, workDir: '/home/me/secret/shop' };
    expect(showTitle(whole, 'full')).toEqual(whole);
    expect(showTitle(whole, 'short')).toEqual({ title: 'Refactor the billing of…', workDir: 'shop' });
    expect(showTitle({ title: undefined, workDir: 'C:\\a\\shop' }, 'short').workDir).toBe('shop');
    expect(showTitle({ title: undefined, workDir: '/' }, 'short').workDir).toBe('/');
    expect(showTitle(whole, 'hidden')).toEqual({ title: undefined, workDir: undefined });
  });

  test('hidden leaves nothing of the work in a row: no title, path, command, error or note', () => {
    const tool = { name: 'Bash', command: 'cat /secret', path: '/secret' };
    const secretive = session(
      { kind: 'working', doing: 'tool', tool },
      {
        error: 'secret',
        facts: { title: 'secret', workDir: '/secret', note: 'secret', native: { x: 'secret' } },
      },
    );
    expect(JSON.stringify(sessionRow(secretive))).toContain('secret');
    const row = sessionRow(sessionWithTitles(secretive, 'hidden'));
    expect(JSON.stringify(row)).not.toContain('secret');
    expect(row).toMatchObject({ state: 'tool_call', title: null, workDir: null });
  });
});
