/**
 * Hooks in the real programs, installed by the compiled executable: that they load without a warning, that states
 * arrive, and that the programs don't feel them, with a daemon and without one (R-48, H15, T1, T2).
 */
import { expect } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { compiledBinary } from '../../helpers/binary.ts';
import { prepareClaude } from '../lab/claude.ts';
import { type Codex, prepareCodex } from '../lab/codex.ts';
import { inOwnWorld, type Lab, scenario } from '../lab/lab.ts';
import { gate, say, shell, text } from '../lab/models/script.ts';
import { asObject, type Body, objectsOf } from '../lab/models/server.ts';
import { ask, type Terminal } from '../lab/terminal.ts';
import { until } from '../lab/until.ts';

inOwnWorld();

const PERMISSION = 'Do you want to proceed?';
const APPROVAL = 'Would you like to run the following command?';
const REVIEW = /hooks? needs? review/i;

async function done(lab: Lab, ...args: string[]): Promise<string> {
  const answer = await lab.connector.run(...args);
  if (answer.code !== 0)
    throw new Error(`${args.join(' ')}: ${answer.code} ${answer.stdout}${answer.stderr}`);
  return answer.stdout;
}

/** What hooks alone have brought to the daemon: the rows of the sessions socket. */
async function rows(lab: Lab): Promise<readonly Body[]> {
  const { services } = await lab.connector.json('daemon', 'status');
  const sessions = objectsOf(services).find((one) => one['name'] === 'sessions');
  return objectsOf(asObject(sessions?.['detail'])?.['sessions']);
}

/** A thread that nobody has prompted has no file, and is not looked at. */
function hears(lab: Lab, state: string): Promise<Body> {
  return until(
    `a session that hooks say is ${state}`,
    async () => {
      return (await rows(lab)).find((row) => row['state'] === state && row['transcript_path'] !== undefined);
    },
    { explain: async () => JSON.stringify(await rows(lab)) },
  );
}

async function status(lab: Lab, runtimeId: string): Promise<Body> {
  const { runtimes } = await lab.connector.json('hooks-status', '--runtime', runtimeId);
  const [only] = objectsOf(runtimes);
  if (!only) throw new Error('no status');
  return only;
}

scenario(
  'hooks in Claude Code: a terminal session, its states by hooks, no warning, and gone without a trace',
  async (lab) => {
    const folder = await lab.folder('acme-app');
    const claude = await prepareClaude(lab, [folder]);
    const settings = join(lab.home, '.claude', 'settings.json');
    const before = '{"cleanupPeriodDays": 30,\n "hooks": {}}\n';
    await Bun.write(settings, before);
    await done(lab, 'daemon', 'start');
    await done(lab, 'install-hooks', '--runtime', 'claude-code');
    expect(await status(lab, 'claude-code')).toMatchObject({
      installed: 'yes',
      trusted: 'unneeded',
      loaded: 'unknown',
      arrives: [{ kind: 'daemon' }],
      notes: [],
    });

    const slow = await lab.barrier('slow');
    const held = gate();
    claude.model.on('Build it', say(shell(slow.command)), say(held, text('Built.')));
    const terminal = await claude.open(folder);
    expect(await terminal.screen()).not.toMatch(/settings (?:warning|error)|hook/i);
    await ask(terminal, 'Build it');
    await terminal.shows(PERMISSION);
    await hears(lab, 'waiting_for_permission');
    await terminal.answer('1', PERMISSION);
    await slow.release();
    await held.reached();
    await hears(lab, 'working');
    held.release();
    await hears(lab, 'idle');
    await lab.connector.sees({ state: 'completed', life: 'alive' });
    expect(await status(lab, 'claude-code')).toMatchObject({ installed: 'yes', loaded: 'yes' });
    expect(await terminal.screen()).not.toMatch(/hook/i);

    await done(lab, 'uninstall-hooks');
    expect(await Bun.file(settings).text()).toBe(before);
  },
);

scenario('hooks in Claude Code: -p with a daemon, after it has gone, and again with one', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  claude.model.on('Say hello', say(text('Hello.')));
  const sayHello = async () => {
    const program = lab.start(['claude', '-p', 'Say hello'], folder);
    expect(await program.exited).toBe(0);
    expect(program.output().trim()).toBe('Hello.');
  };
  await done(lab, 'install-hooks', '--runtime', 'claude-code');
  await sayHello();
  expect(await status(lab, 'claude-code')).toMatchObject({
    arrives: [{ kind: 'nobody' }],
    loaded: 'unknown',
  });

  await done(lab, 'daemon', 'start');
  await sayHello();
  await hears(lab, 'ended');
  expect(await status(lab, 'claude-code')).toMatchObject({ arrives: [{ kind: 'daemon' }], loaded: 'yes' });

  await done(lab, 'daemon', 'stop');
  await sayHello();
  expect(await status(lab, 'claude-code')).toMatchObject({ arrives: [{ kind: 'journal' }], loaded: 'yes' });
});

scenario(
  'hooks in Claude Code: what hooks said while no daemon ran is known to the next one',
  async (lab) => {
    const folder = await lab.folder('acme-app');
    const claude = await prepareClaude(lab, [folder]);
    await done(lab, 'install-hooks', '--runtime', 'claude-code');
    await done(lab, 'daemon', 'start');
    await done(lab, 'daemon', 'stop');
    claude.model.on('Build it', say(shell('mkdir build')));
    const terminal = await claude.open(folder);
    await ask(terminal, 'Build it');
    await terminal.shows(PERMISSION);
    await done(lab, 'daemon', 'start');
    await hears(lab, 'waiting_for_permission');
  },
);

/** What a person does who trusts what Codex asks about at its start. */
async function trustAll(terminal: Terminal): Promise<void> {
  await terminal.shows(REVIEW);
  await terminal.pressFor('2', '› 2. Trust all');
  await terminal.answer('Enter', REVIEW);
  await terminal.shows(/GPT-5\.\d.* · /);
}

/** A hook of the user's own at the end of a turn, trusted in the terminal program. */
async function withUsersHook(lab: Lab, codex: Codex, folder: string): Promise<string> {
  const mark = join(lab.home, 'stopped');
  const handler = { type: 'command', command: `touch ${mark}` };
  await Bun.write(
    join(codex.home, 'hooks.json'),
    JSON.stringify({ hooks: { Stop: [{ hooks: [handler] }] } }),
  );
  const terminal = await lab.terminal({ command: ['codex'], cwd: folder });
  await trustAll(terminal);
  await terminal.close();
  return mark;
}

scenario(
  'hooks in Codex: with a yes they are trusted, load without a question, and the user’s own stay trusted',
  async (lab) => {
    const folder = await lab.folder('acme-app');
    const codex = await prepareCodex(lab, [folder]);
    const mark = await withUsersHook(lab, codex, folder);
    const before = await Bun.file(join(codex.home, 'hooks.json')).text();
    await done(lab, 'daemon', 'start');
    await done(lab, 'install-hooks', '--runtime', 'codex', '--trust-codex');
    expect(await status(lab, 'codex')).toMatchObject({
      installed: 'yes',
      trusted: 'yes',
      loaded: 'unknown',
      arrives: [{ kind: 'daemon' }],
    });

    const slow = await lab.barrier('slow');
    const held = gate();
    codex.model.on('Install', say(shell(slow.command, 'May I?')), say(held, text('Installed.')));
    const terminal = await codex.open(folder);
    expect(await terminal.screen()).not.toMatch(/hook/i);
    await ask(terminal, 'Install left-pad');
    await terminal.shows(APPROVAL);
    await hears(lab, 'waiting_for_permission');
    await terminal.answer('y', APPROVAL);
    await slow.release();
    await held.reached();
    await hears(lab, 'working');
    held.release();
    await hears(lab, 'idle');
    expect(existsSync(mark)).toBe(true);
    expect(await status(lab, 'codex')).toMatchObject({ trusted: 'yes', loaded: 'yes' });

    await done(lab, 'uninstall-hooks');
    expect(await Bun.file(join(codex.home, 'hooks.json')).text()).toBe(before);
  },
);

scenario(
  'hooks in Codex: without a yes they are installed and not trusted, and that is said (T2)',
  async (lab) => {
    const folder = await lab.folder('acme-app');
    await prepareCodex(lab, [folder]);
    const said = await done(lab, 'install-hooks', '--runtime', 'codex');
    expect(said).toContain('--trust-codex');
    const look = await lab.connector.run('hooks-status', '--runtime', 'codex');
    expect(look.code).toBe(51);
    expect(await status(lab, 'codex')).toMatchObject({ installed: 'yes', trusted: 'no' });

    const terminal = await lab.terminal({ command: ['codex'], cwd: folder });
    await trustAll(terminal);
    expect(await status(lab, 'codex')).toMatchObject({ installed: 'yes', trusted: 'yes' });
  },
);

scenario(
  'hooks in Codex: on a terminal a person is asked, and no is the answer to everything else',
  async (lab) => {
    const folder = await lab.folder('acme-app');
    await prepareCodex(lab, [folder]);
    const command = [await compiledBinary(), 'install-hooks', '--runtime', 'codex'];
    const first = await lab.terminal({ command, cwd: folder });
    await first.shows('[y/N]');
    await first.press('Enter');
    await first.shows('--trust-codex');
    expect(await status(lab, 'codex')).toMatchObject({ installed: 'yes', trusted: 'no' });
    await done(lab, 'uninstall-hooks');
    const second = await lab.terminal({ command, cwd: folder });
    await second.shows('[y/N]');
    await second.type('y');
    await second.press('Enter');
    await second.shows('Codex trusts all 12 hooks of ours');
    expect(await status(lab, 'codex')).toMatchObject({ installed: 'yes', trusted: 'yes' });
  },
);

scenario(
  'hooks in Codex: exec with a daemon and after it has gone, without a word about hooks',
  async (lab) => {
    const folder = await lab.folder('acme-app');
    const codex = await prepareCodex(lab, [folder]);
    codex.model.on('Say hello', say(text('Hello.')));
    await done(lab, 'install-hooks', '--runtime', 'codex', '--trust-codex');
    await done(lab, 'daemon', 'start');
    const sayHello = async () => {
      const program = codex.exec(folder, 'Say hello');
      expect(await program.exited).toBe(0);
      expect(program.output()).toContain('Hello.');
      expect(program.output()).not.toMatch(/hook/i);
    };
    await sayHello();
    await hears(lab, 'ended');
    await done(lab, 'daemon', 'stop');
    await sayHello();
    expect(await status(lab, 'codex')).toMatchObject({ arrives: [{ kind: 'journal' }], loaded: 'yes' });
  },
);

scenario('hooks in Codex: where its user keeps hooks in config.toml, ours load from there', async (lab) => {
  const folder = await lab.folder('acme-app');
  const codex = await prepareCodex(lab, [folder]);
  const file = join(codex.home, 'config.toml');
  const mark = join(lab.home, 'stopped');
  const mine = `\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = "command"\ncommand = "touch ${mark}"\n`;
  await Bun.write(file, (await Bun.file(file).text()) + mine);
  codex.model.on('Say hello', say(text('Hello.')));
  await done(lab, 'install-hooks', '--runtime', 'codex', '--trust-codex');
  expect(existsSync(join(codex.home, 'hooks.json'))).toBe(false);
  expect(await status(lab, 'codex')).toMatchObject({ files: [file], installed: 'yes', trusted: 'yes' });
  await done(lab, 'daemon', 'start');
  const program = codex.exec(folder, 'Say hello');
  expect(await program.exited).toBe(0);
  expect(program.output()).not.toMatch(/hook/i);
  await hears(lab, 'ended');
  // Nobody has trusted the user's own: we never say yes for others.
  expect(existsSync(mark)).toBe(false);
});

scenario(
  'hooks in Codex: a hook put behind ours keeps its place and its trust when ours go (S-823, S-824)',
  async (lab) => {
    const folder = await lab.folder('acme-app');
    const codex = await prepareCodex(lab, [folder]);
    const file = join(codex.home, 'hooks.json');
    const mark = join(lab.home, 'stopped');
    codex.model.on('Say hello', say(text('Hello.')));
    await done(lab, 'install-hooks', '--runtime', 'codex', '--trust-codex');
    const hooks = asObject((await Bun.file(file).json()).hooks) ?? {};
    const mine = { hooks: [{ type: 'command', command: `touch ${mark}` }] };
    await Bun.write(file, JSON.stringify({ hooks: { ...hooks, Stop: [...objectsOf(hooks['Stop']), mine] } }));
    const terminal = await lab.terminal({ command: ['codex'], cwd: folder });
    await trustAll(terminal);
    await terminal.close();

    expect(await done(lab, 'uninstall-hooks', '--runtime', 'codex')).toContain('your other hooks stands');
    expect(await Bun.file(file).json()).toEqual({ hooks: { Stop: [{ hooks: [] }, mine] } });
    const program = codex.exec(folder, 'Say hello');
    expect(await program.exited).toBe(0);
    expect(existsSync(mark)).toBe(true);
    expect(program.output()).not.toMatch(/hook/i);
  },
);
