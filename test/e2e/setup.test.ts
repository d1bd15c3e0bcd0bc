import { afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { EXIT } from '../../src/runtime/errors.ts';
import { compiledBinary } from '../helpers/binary.ts';
import { bareEnvironment, type CliResult, cli, temporaryHome } from '../helpers/cli.ts';
import { createCleanup } from '../runtime/daemon/harness.ts';
import { noTerminalReason, openTerminal, type Terminal } from './lab/terminal.ts';

// Compiling takes its time, and so does a machine with other work.
setDefaultTimeout(120_000);
beforeAll(compiledBinary);

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const CLAUDE = '.claude/settings.json';
const CODE = '.config/Code/User/settings.json';
const CODEX = '.codex/hooks.json';
const CONFIG = '.shadowob/connector/config.json';

const BYTES: Readonly<Record<string, string>> = {
  [CLAUDE]: '{"model":"opus"}',
  [CODE]: '{\n  // mine\n  "a": 1,\n}\n',
};

interface Computer {
  at(path: string): string;
  read(path: string): string | undefined;
  run(...args: string[]): Promise<CliResult>;
  /** `setup` where somebody sits. */
  sit(): Promise<Terminal>;
}

/** A Claude Code, the folder of a Codex, and a VS Code, with settings of their own. */
function computer(): Computer {
  const home = temporaryHome();
  cleanup.add(() => home[Symbol.dispose]());
  const path = realpathSync(home.path);
  const at = (name: string) => join(path, name);
  for (const folder of ['bin', '.claude', '.codex', '.config/Code/User'])
    mkdirSync(at(folder), { recursive: true });
  writeFileSync(at('bin/claude'), '#!/bin/sh\necho "2.1.332 (Claude Code)"\n');
  chmodSync(at('bin/claude'), 0o755);
  for (const [name, text] of Object.entries(BYTES)) writeFileSync(at(name), text);
  const env = { PATH: `${at('bin')}:/usr/bin:/bin` };
  const run = (...args: string[]) => cli(args, { home: path, env });
  cleanup.add(() => run('daemon', 'stop'));
  return {
    at,
    read: (name) => (existsSync(at(name)) ? readFileSync(at(name), 'utf8') : undefined),
    run,
    async sit() {
      const terminal = await openTerminal({
        command: [await compiledBinary(), 'setup'],
        cwd: path,
        env: { ...bareEnvironment(path, env), TERM: 'xterm' },
        socket: at('t'),
        rows: 100,
      });
      cleanup.add(() => terminal.close());
      return terminal;
    },
  };
}

/** Every file outside of the caches, with its bytes and mode. */
function picture(one: Computer): Readonly<Record<string, string>> {
  const names = readdirSync(one.at('.'), { recursive: true, encoding: 'utf8' });
  const files = names.filter((name) => statSync(one.at(name), { throwIfNoEntry: false })?.isFile());
  // What may be deleted at any time, and what a daemon that runs goes on writing.
  const lasting = files.filter((name) => !/connector\/(cache|run)\/|daemon\.(log|lock)/.test(name));
  return Object.fromEntries(
    lasting
      .toSorted()
      .map((name) => [
        name,
        `${statSync(one.at(name)).mode.toString(8)} ${readFileSync(one.at(name), 'utf8')}`,
      ]),
  );
}

interface Told {
  readonly steps: readonly { readonly id: string; readonly result: string; readonly default?: boolean }[];
  readonly undo: readonly string[];
  readonly proof: unknown;
}

const told = ({ stdout }: CliResult): Told => JSON.parse(stdout);
const results = ({ steps }: Told) => Object.fromEntries(steps.map(({ id, result }) => [id, result]));

/** Runs the commands that setup named. */
async function takeBack(one: Computer, undo: readonly string[]): Promise<readonly number[]> {
  const codes: number[] = [];
  for (const command of undo) {
    const [program, ...words] = command.split(' ');
    expect(program).toBe('shadowob-connector');
    codes.push((await one.run(...words)).code ?? -1);
  }
  return codes;
}

describe.skipIf(process.platform === 'win32')('setup', () => {
  test('without a terminal and without --yes it changes nothing, says so, and leaves with 20', async () => {
    const one = computer();
    const before = picture(one);
    const text = await one.run('setup');
    expect([text.code, text.stdout]).toEqual([EXIT.usage, '']);
    expect(text.stderr).toContain('there is no terminal; nothing was changed\n--yes takes the defaults');
    const json = await one.run('setup', '--json');
    expect([json.code, JSON.parse(json.stdout).error.kind]).toEqual([EXIT.usage, 'usage']);
    expect(picture(one)).toEqual(before);
  });

  test('--dry-run says what it would ask, with each default, and changes nothing', async () => {
    const one = computer();
    const before = picture(one);
    const dry = await one.run('setup', '--dry-run', '--json');
    expect(dry.code).toBe(EXIT.ok);
    expect(told(dry).steps.map(({ id, result, default: byDefault }) => [id, result, byDefault])).toEqual([
      ['hooks:claude-code', 'offered', true],
      ['hooks:codex', 'offered', true],
      ['trust:codex', 'offered', false],
      ['service', 'offered', true],
      ['notifications', 'offered', false],
      ['wrapper', 'offered', false],
    ]);
    expect(told(dry)).toMatchObject({ dryRun: true, proof: null, undo: [] });
    const text = await one.run('setup', '--dry-run');
    expect(text.stdout).toStartWith('On this computer: Claude Code 2.1.332.\nEditors: VS Code.\n');
    expect(text.stdout).toContain('Nothing was changed.');
    expect(picture(one)).toEqual(before);
  });

  test('R-23 R-25 --yes: hooks and the daemon, proved; a second run changes nothing; the undo commands bring the bytes back', async () => {
    const one = computer();
    const before = picture(one);
    const first = await one.run('setup', '--yes', '--json');
    expect([first.code, results(told(first))]).toEqual([
      EXIT.ok,
      {
        'hooks:claude-code': 'done',
        'hooks:codex': 'done',
        'trust:codex': 'declined',
        service: 'done',
        notifications: 'declined',
        wrapper: 'declined',
      },
    ]);
    const arrives = [{ kind: 'daemon' }];
    expect(told(first).proof).toMatchObject({
      hooks: [
        { runtimeId: 'claude-code', installed: 'yes', arrives },
        { runtimeId: 'codex', installed: 'yes', arrives },
      ],
      daemon: { running: true },
    });
    expect(one.read(CLAUDE)).toContain('hook --agent claude');
    expect([one.read(CODE), one.read(CONFIG)]).toEqual([BYTES[CODE], undefined]);

    const between = picture(one);
    const again = await one.run('setup', '--yes', '--json');
    expect([again.code, results(told(again))]).toMatchObject([
      EXIT.ok,
      { 'hooks:claude-code': 'already', 'hooks:codex': 'already', service: 'already' },
    ]);
    expect(picture(one)).toEqual(between);
    expect((await one.run('setup', '--yes')).stdout).toContain('Already so\n  Hooks for Claude Code\n');

    const { undo } = told(again);
    expect(undo).toEqual([
      'shadowob-connector daemon stop',
      'shadowob-connector uninstall-hooks --runtime codex',
      'shadowob-connector uninstall-hooks --runtime claude-code',
    ]);
    expect(await takeBack(one, undo)).toEqual([0, 0, 0]);
    const { [CLAUDE]: claude, [CODEX]: codex } = picture(one);
    expect([claude, codex]).toEqual([before[CLAUDE], before[CODEX]]);
    expect((await one.run('daemon', 'status')).code).toBe(EXIT.daemon);
  });

  test('H1 a file that can’t be edited is named with its lines and is the exit code; everything else is done', async () => {
    const one = computer();
    writeFileSync(one.at(CLAUDE), '{ // x\n}');
    const answer = await one.run('setup', '--yes');
    expect(answer.code).toBe(EXIT.configRefused);
    expect(answer.stdout).toContain('Not done\n  Hooks for Claude Code\n');
    expect(answer.stdout).toContain('"SessionStart": [');
    expect(answer.stdout).toContain('\nProof\n  Codex CLI: installed yes');
    expect(one.read(CLAUDE)).toBe('{ // x\n}');
  });
});

describe.skipIf(process.platform === 'win32' || noTerminalReason() !== undefined)(
  'setup, on a terminal',
  () => {
    test('R-25 every question has its default, the change is shown on request, a notice is tried, and all of it is taken back', async () => {
      const one = computer();
      const log = one.at('told.ndjson');
      writeFileSync(one.at('told.sh'), `#!/bin/sh\ncat >> '${log}'\n`);
      chmodSync(one.at('told.sh'), 0o700);
      await one.run('config', 'set', 'notifications.sinks.desktop.enabled', 'false');
      await one.run('config', 'set', 'notifications.sinks.command.argv', JSON.stringify([one.at('told.sh')]));
      const settings = one.read(CONFIG);

      const terminal = await one.sit();
      const reply = async (question: string, hint: string, word: string) => {
        await terminal.shows(
          new RegExp(`${RegExp.escape(question)}[^[]*\\[${RegExp.escape(hint)}\\] ?\\s*$`),
        );
        await terminal.type(word);
        await terminal.press('Enter');
      };
      await reply('Install hooks for Claude Code?', 'Y/n/d to see the change', 'd');
      await terminal.shows('hook --agent claude');
      await terminal.type('y');
      await terminal.press('Enter');
      await reply('Install hooks for Codex CLI?', 'Y/n/d to see the change', 'n');
      await terminal.shows('For later: shadowob-connector install-hooks --runtime codex');
      await reply('Start the daemon in the background?', 'Y/n', '');
      await reply('Turn notifications on?', 'y/N', 'y');
      await reply('Try one now?', 'Y/n', '');
      await reply('Let VS Code start Claude Code through the wrapper?', 'y/N/d to see the change', 'yes');
      const screen = await terminal.shows('shadowob-connector uninstall-hooks --runtime claude-code');
      expect(await terminal.ended()).toBe(EXIT.ok);
      expect(screen).not.toContain('looking');
      expect(JSON.parse(readFileSync(log, 'utf8'))).toMatchObject({ event: 'connector.test' });
      expect(one.read(CODE)).toContain('claudeCode.claudeProcessWrapper');
      expect(one.read(CODEX)).toBeUndefined();

      const { undo } = told(await one.run('setup', '--dry-run', '--json'));
      expect(undo).toHaveLength(4);
      expect(await takeBack(one, undo)).toEqual([0, 0, 0, 0]);
      expect([one.read(CLAUDE), one.read(CODE), one.read(CONFIG)]).toEqual([
        BYTES[CLAUDE],
        BYTES[CODE],
        settings,
      ]);
      expect(existsSync(one.at('.shadowob/connector/claude-wrap'))).toBe(false);
    });

    test('Ctrl-C in the middle leaves what was done, says it, and leaves with 130', async () => {
      const one = computer();
      const terminal = await one.sit();
      await terminal.shows('Install hooks for Claude Code?');
      await terminal.press('Enter');
      await terminal.shows('Install hooks for Codex CLI?');
      await terminal.press('C-c');
      const screen = await terminal.shows('Stopped. What was done stays done.');
      expect(await terminal.ended()).toBe(130);
      expect(screen).toContain('To take it back\n  shadowob-connector uninstall-hooks --runtime claude-code');
      expect(one.read(CLAUDE)).toContain('hook --agent claude');
      expect(one.read(CODEX)).toBeUndefined();
      expect((await one.run('daemon', 'status')).code).toBe(EXIT.daemon);
    });
  },
);
