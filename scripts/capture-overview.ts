/**
 * Makes the picture of the README from the real thing:
 *
 *   bun scripts/capture-overview.ts      writes docs/overview.txt and docs/overview.svg
 *
 * Three real programs in a lab: one waits for approval, one works, one is done. What the compiled executable shows of
 * them in a terminal is captured and drawn by `terminal-svg.ts`.
 */
import { resolve } from 'node:path';
import { prepareClaude } from '../test/e2e/lab/claude.ts';
import { prepareCodex } from '../test/e2e/lab/codex.ts';
import { isIsolated, openWorld, probeIsolation } from '../test/e2e/lab/isolation.ts';
import { type Lab, openLab } from '../test/e2e/lab/lab.ts';
import { gate, say, shell, text } from '../test/e2e/lab/models/script.ts';
import { prepareOpenCode } from '../test/e2e/lab/opencode.ts';
import { installPrograms } from '../test/e2e/lab/programs.ts';
import { ask } from '../test/e2e/lab/terminal.ts';
import { compiledBinary } from '../test/helpers/binary.ts';

const DOCS = resolve(import.meta.dir, '..', 'docs');
const SIZE = { columns: 120, rows: 30 } as const;

async function outside(): Promise<number> {
  const isolation = probeIsolation();
  if (isolation.kind === 'unavailable') throw new Error(`no world can be made here: ${isolation.reason}`);
  await installPrograms((line) => console.error(line));
  const env = { ...process.env, SHADOWOB_TEST_BINARY: await compiledBinary() };
  const command = isolation.isolated([process.execPath, import.meta.path]);
  return Bun.spawn(command, { env, stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' }).exited;
}

async function inside(): Promise<number> {
  openWorld();
  await using lab = await openLab();
  await populate(lab);
  const shown = await capture(lab);
  // The home is shown as ~, so nothing of this machine may be in it.
  if (shown.includes(lab.home)) throw new Error(`a path of this machine is in the picture:\n${shown}`);
  const plain = Bun.stripANSI(shown).replace(/[ \t]+$/gm, '');
  await Bun.write(resolve(DOCS, 'overview.txt'), `${plain.trimEnd()}\n`);
  const drawer = [process.execPath, resolve(import.meta.dir, 'terminal-svg.ts')];
  const drawn = Bun.spawn(drawer, { stdin: new TextEncoder().encode(shown), stdout: 'pipe' });
  await Bun.write(resolve(DOCS, 'overview.svg'), await new Response(drawn.stdout).text());
  return drawn.exited;
}

async function populate(lab: Lab): Promise<void> {
  const [app, billing, site] = [
    await lab.folder('acme-app'),
    await lab.folder('billing'),
    await lab.folder('website'),
  ];
  const claude = await prepareClaude(lab, [app]);
  const codex = await prepareCodex(lab, [billing]);
  const opencode = await prepareOpenCode(lab);
  const held = gate();
  opencode.model.titleIs('Fix the broken links');
  claude.model.on('Add the', say(shell('npm install stripe')));
  codex.model.on('Find out', say(text('I will look at '), held));
  const program = opencode.run(site, 'Fix the broken links on the pricing page');
  await program.exited;
  codex.exec(billing, 'Find out why the nightly invoices are late');
  await held.reached();
  const terminal = await claude.open(app);
  await ask(terminal, 'Add the payment page');
  await terminal.shows('Do you want to proceed?');
  await lab.connector.sees({ state: 'waiting_for_approval', needsYou: true }, { runtimeId: 'claude-code' });
  await lab.connector.sees({ state: 'running' }, { runtimeId: 'codex' });
  await lab.connector.sees({ state: 'completed' }, { runtimeId: 'opencode' });
}

async function capture(lab: Lab): Promise<string> {
  // The versions of the programs are asked once; the picture is of the second look, as people mostly have it.
  await lab.connector.run('runtime-scan');
  // A pane whose program has ended loses its first line to a note of tmux, so something stays in it.
  const command = ['sh', '-c', '"$1"; exec cat', 'sh', await compiledBinary()];
  const overview = await lab.terminal({ command, cwd: lab.home, ...SIZE });
  await overview.shows(/waits for you[\s\S]*OpenCode[\s\S]*Not installed/);
  return (await overview.colours()).trimEnd();
}

process.exit(isIsolated() ? await inside() : await outside());
