import { expect } from 'bun:test';
import { compiledBinary } from '../../helpers/binary.ts';
import { prepareClaude } from '../lab/claude.ts';
import { prepareCodex } from '../lab/codex.ts';
import { inOwnWorld, type Lab, scenario } from '../lab/lab.ts';
import { gate, say, shell, text } from '../lab/models/script.ts';
import { objectsOf } from '../lab/models/server.ts';
import { prepareOpenCode } from '../lab/opencode.ts';
import { NODE_PATH, PROGRAMS_PATH, VERSIONS } from '../lab/programs.ts';
import { ask, type Terminal } from '../lab/terminal.ts';

inOwnWorld();

const PERMISSION = 'Do you want to proceed?';
const PASSWORD = 'lab-password';

/** Opens the product's panel as a person does. */
async function openPanel(lab: Lab, columns: number, ...before: string[]): Promise<Terminal> {
  const command = [...before, await compiledBinary(), 'runtime-watch'];
  return lab.terminal({ command, cwd: lab.home, columns, rows: 30 });
}

scenario('runtime-scan finds the programs with their versions', async (lab) => {
  lab.set({ PATH: `${lab.env['PATH']}`.replace(PROGRAMS_PATH, `${PROGRAMS_PATH}:${NODE_PATH}`) });
  const { runtimes } = await lab.connector.json('runtime-scan');
  const found = objectsOf(runtimes).filter((one) => String(one['id']) in VERSIONS);
  expect(found.map((one) => one['id']).sort()).toEqual(Object.keys(VERSIONS).sort());
  for (const [id, version] of Object.entries(VERSIONS)) {
    // The first line of what the program says, as it says it.
    expect(String(found.find((one) => one['id'] === id)?.['version'])).toContain(version);
  }
  for (const one of found) {
    expect(one).toMatchObject({ status: 'available', installState: 'installed' });
    expect(one['scanError']).toBeUndefined();
    expect(['Ready', 'Limited', 'Needs setup', 'Installed']).toContain(String(one['readiness']));
  }
});

scenario(
  'three runtimes at once: the one that waits stands first, then who works, then who is done',
  async (lab) => {
    const folder = await lab.folder('acme-app');
    const claude = await prepareClaude(lab, [folder]);
    const codex = await prepareCodex(lab, [folder]);
    const opencode = await prepareOpenCode(lab);
    const held = gate();
    claude.model.on('Build it', say(shell('mkdir build')), say(text('Built.')));
    codex.model.on('Count', say(text('One '), held, text('two.')));
    const watch = await lab.connector.watch();

    const server = await opencode.serve(folder, PASSWORD);
    lab.set({ OPENCODE_SERVER_PASSWORD: PASSWORD });
    const done = await server.createSession();
    await server.prompt(done, 'Say hello');
    const working = codex.exec(folder, 'Count to two');
    await held.reached();
    const terminal = await claude.open(folder);
    await ask(terminal, 'Build it');
    await terminal.shows(PERMISSION);
    await lab.connector.sees({ state: 'completed' }, { runtimeId: 'opencode' });
    await lab.connector.sees({ state: 'running' }, { runtimeId: 'codex' });
    await lab.connector.sees({ state: 'waiting_for_approval', needsYou: true }, { runtimeId: 'claude-code' });
    const order = await lab.connector.sessions();
    expect(order.map((row) => row.runtimeId)).toEqual(['claude-code', 'codex', 'opencode']);
    const times = watch.events.map((event) => Date.parse(event.at));
    expect(times).toEqual(times.toSorted((a, b) => a - b));

    held.release();
    expect(await working.exited).toBe(0);
    await lab.connector.sees({ state: 'completed' }, { runtimeId: 'codex' });
  },
);

scenario('the panel redraws in place, keeps the order of need, and survives a resize', async (lab) => {
  const [one, two] = [await lab.folder('acme-app'), await lab.folder('billing')];
  const claude = await prepareClaude(lab, [one, two]);
  const held = gate();
  claude.model.on('Write', say(text('Dear '), held, text('all.')));
  claude.model.on('Build it', say(shell('mkdir build')), say(text('Built.')));
  const panel = await openPanel(lab, 120);
  const writer = await claude.open(two);
  await ask(writer, 'Write a letter');
  await held.reached();
  await panel.shows(/running.*|billing/);
  const builder = await claude.open(one);
  await ask(builder, 'Build it');
  await builder.shows(PERMISSION);
  await panel.shows(/acme-app[\s\S]*billing/);

  await panel.resize(70, 12);
  const small = await panel.shows(/acme-app[\s\S]*billing/);
  const lines = small.split('\n');
  expect(lines.length).toBeLessThanOrEqual(12);
  expect(lines.every((line) => Bun.stringWidth(line) <= 70)).toBe(true);
  await panel.resize(140, 30);
  await builder.answer('1', PERMISSION);
  held.release();
  const drawn = await panel.shows(/completed[\s\S]*completed/);
  // Drawn in place: one picture, however often it was painted.
  expect(drawn.split('acme-app')).toHaveLength(2);
  await panel.press('C-c');
  expect(await panel.ended()).toBe(0);
});

scenario('with TERM=dumb the panel prints plain pictures, one below the other', async (lab) => {
  const folder = await lab.folder('acme-app');
  const claude = await prepareClaude(lab, [folder]);
  const panel = await openPanel(lab, 120, 'env', 'TERM=dumb');
  const terminal = await claude.open(folder);
  await panel.shows('acme-app');
  const held = gate();
  claude.model.on('Write', say(text('Dear '), held));
  await ask(terminal, 'Write a letter');
  await held.reached();
  await panel.shows(/acme-app[\s\S]*acme-app/);
  expect(await panel.colours()).not.toContain('\u001b');
});
