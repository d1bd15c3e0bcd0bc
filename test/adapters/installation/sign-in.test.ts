import { describe, expect, test } from 'bun:test';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CATALOG } from '../../../src/adapters/catalog.ts';
import type { InstallationHost } from '../../../src/adapters/installation/scan.ts';
import { scanInstallations } from '../../../src/adapters/installation/scan.ts';
import { SIGN_IN_AGE_MS, type SignIn, signInsOf } from '../../../src/adapters/installation/sign-in.ts';
import { withFolder } from '../../runtime/process/helpers.ts';
import { computer, install } from './helpers.ts';

/** A program that answers with its version, and with these words to its status command. */
function program(home: string, name: string, version: string, status: string): void {
  install(home, name, `case "$1" in --version|-v) echo "${version}" ;; *) ${status} ;; esac`);
}

const CLAUDE = '2.1.332 (Claude Code)';

async function look(
  host: InstallationHost,
  runtimeId: string,
  how: 'ask' | 'remembered' = 'ask',
  ms = 20_000,
): Promise<SignIn | undefined> {
  const entries = CATALOG.filter(({ id }) => id === runtimeId);
  const { reports } = await scanInstallations(host, { entries });
  return (await signInsOf(reports, host, { how, deadlineAt: host.now() + ms })).get(runtimeId);
}

function claudeHome(home: string): void {
  writeFileSync(join(home, '.claude.json'), '{}');
}

describe.skipIf(process.platform === 'win32')('R-41 sign-in, by the runtimes’ own status commands', () => {
  for (const [status, want] of [
    [`echo '{"loggedIn": true, "apiProvider": "bedrock"}'`, 'ok'],
    [`echo '{"loggedIn": false}'; exit 1`, 'missing'],
    ['echo "unknown command"; exit 1', 'unknown'],
  ] as const) {
    test(`Claude Code that says ${status} is ${want}`, () =>
      withFolder(async (home) => {
        claudeHome(home);
        program(home, 'claude', CLAUDE, status);
        const host = computer(home);
        expect(await look(host, 'claude-code')).toBe(want);
        expect(host.started.at(-1)).toEndWith('/claude auth status');
      }));
  }

  test('Claude Code that never ran is not asked: the command would lay its configuration', () =>
    withFolder(async (home) => {
      program(home, 'claude', CLAUDE, `echo '{"loggedIn": true}'`);
      const host = computer(home);
      expect(await look(host, 'claude-code')).toBe('unknown');
      expect(host.started.filter((one) => one.includes('auth'))).toEqual([]);
    }));

  test('a version older than the command gets no words that it would take for a prompt', () =>
    withFolder(async (home) => {
      claudeHome(home);
      program(home, 'claude', '2.0.76 (Claude Code)', `echo '{"loggedIn": true}'`);
      const host = computer(home);
      expect(await look(host, 'claude-code')).toBeUndefined();
      expect(host.started.filter((one) => one.includes('auth'))).toEqual([]);
    }));

  test('Codex says it on standard error; with a provider of its own its “no” tells nothing', () =>
    withFolder(async (home) => {
      program(home, 'codex', 'codex-cli 0.171.0', 'echo "Not logged in" >&2; exit 1');
      expect(await look(computer(home), 'codex')).toBe('missing');
      mkdirSync(join(home, '.codex'));
      writeFileSync(join(home, '.codex', 'config.toml'), 'model_provider = "lab"\n');
      expect(await look(computer(home), 'codex')).toBe('unknown');
      program(home, 'codex', 'codex-cli 0.171.0', 'echo "Logged in using ChatGPT" >&2');
      expect(await look(computer(home), 'codex')).toBe('ok');
    }));

  test('OpenCode has no such command that says something: it works without a sign-in, too', () =>
    withFolder(async (home) => {
      program(home, 'opencode', '1.18.33', 'echo "0 credentials"');
      expect(await look(computer(home), 'opencode')).toBeUndefined();
    }));

  test('one that hangs is unknown, and is ended', () =>
    withFolder(async (home) => {
      claudeHome(home);
      program(home, 'claude', CLAUDE, 'sleep 1000');
      expect(await look(computer(home), 'claude-code', 'ask', 300)).toBe('unknown');
    }));

  test('an answer is believed for a minute; the overview starts nothing, and believes a yes for longer than a no', () =>
    withFolder(async (home) => {
      for (const [status, later] of [
        [`echo '{"loggedIn": true}'`, 'ok'],
        [`echo '{"loggedIn": false}'`, undefined],
      ] as const) {
        claudeHome(home);
        program(home, 'claude', CLAUDE, status);
        const clock = { at: Date.now() };
        const host = computer(home, { now: () => clock.at });
        const asks = () => host.started.filter((one) => one.endsWith('auth status')).length;
        expect(await look(host, 'claude-code', 'remembered')).toBeUndefined();
        const first = await look(host, 'claude-code');
        clock.at += SIGN_IN_AGE_MS;
        expect([await look(host, 'claude-code'), asks()]).toEqual([first, 1]);
        clock.at += 1;
        expect([await look(host, 'claude-code', 'remembered'), asks()]).toEqual([later, 1]);
        await look(host, 'claude-code');
        expect(asks()).toBe(2);
      }
    }));
});
