import { afterAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { chmodSync, copyFileSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { currentHost } from '../../scripts/lib/host.ts';
import { assetName } from '../../scripts/lib/targets.ts';
import { compiledBinary } from '../helpers/binary.ts';
import { tempFolders } from './temp.ts';

setDefaultTimeout(60_000);

const LAUNCHER = resolve(import.meta.dir, '..', '..', 'scripts', 'cli.js');
const WINDOWS = process.platform === 'win32';
const NODE = Bun.which('node') ?? 'node';
const newFolder = tempFolders('cli');
const started: Bun.Subprocess[] = [];

afterAll(() => {
  for (const child of started) child.kill('SIGKILL');
});

type Modules = 'module' | 'commonjs' | 'none';

/** A folder as the desktop app lays it out: dist/cli.js, a package.json beside dist, and no executable. */
function layLauncher(modules: Modules = 'module'): string {
  const dist = join(newFolder(), 'dist');
  mkdirSync(dist);
  copyFileSync(LAUNCHER, join(dist, 'cli.js'));
  if (modules !== 'none') writeFileSync(join(dist, '..', 'package.json'), JSON.stringify({ type: modules }));
  return dist;
}

/** An executable beside the launcher, made of a few lines for Node. */
function layProgram(dist: string, body: string, name = 'shadowob-connector'): void {
  const file = join(dist, name);
  // Without an extension Node takes it for CommonJS or a module by the nearest package.json.
  mkdirSync(join(dist, 'program'), { recursive: true });
  const script = join(dist, 'program', `${name}.cjs`);
  writeFileSync(script, body);
  writeFileSync(file, `#!/bin/sh\nexec '${NODE}' '${script}' "$@"\n`);
  chmodSync(file, 0o755);
}

function start(dist: string, args: readonly string[] = [], env: Record<string, string> = {}) {
  const child = Bun.spawn([NODE, join(dist, 'cli.js'), ...args], {
    env: { ...process.env, ELECTRON_RUN_AS_NODE: '1', ...env },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  started.push(child);
  return child;
}

async function run(dist: string, args: readonly string[] = [], env: Record<string, string> = {}, stdin = '') {
  const child = start(dist, args, env);
  child.stdin.write(stdin);
  child.stdin.end();
  const [out, err] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  await child.exited;
  return { out, err, code: child.exitCode, signal: child.signalCode };
}

/** Reads until the program has said this word; the rest of the stream can be read afterwards. */
async function untilSaid(child: { stdout: ReadableStream<Uint8Array> }, word: string) {
  const reader = child.stdout.getReader();
  const decoder = new TextDecoder();
  const seen: string[] = [];
  while (!seen.join('').includes(word)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`ended before it said ${word}: ${seen.join('')}`);
    seen.push(decoder.decode(value, { stream: true }));
  }
  return {
    /** All that follows, up to the moment when no process holds the stream any more. */
    rest: async () => {
      const rest: string[] = [];
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return rest.join('');
        rest.push(decoder.decode(value, { stream: true }));
      }
    },
  };
}

const FOREVER = "setInterval(() => {}, 1000); process.stdout.write('ready\\n');";

describe.skipIf(WINDOWS)('dist/cli.js', () => {
  test.each(['module', 'commonjs', 'none'] as const)(
    'loads under a package.json of type %s',
    async (modules) => {
      const dist = layLauncher(modules);
      layProgram(dist, "process.stdout.write('here')");
      expect(await run(dist)).toEqual({ out: 'here', err: '', code: 0, signal: null });
    },
  );

  test('hands over arguments, all three streams and the exit code', async () => {
    const dist = layLauncher();
    layProgram(
      dist,
      `let text = '';
       process.stdin.on('data', (d) => { text += d; });
       process.stdin.on('end', () => {
         process.stdout.write(JSON.stringify({ args: process.argv.slice(2), text }));
         process.stderr.write('to stderr');
         process.exitCode = 23;
       });`,
    );
    const answer = await run(dist, ['session-list', '--json', 'a b', "c'd", ''], {}, 'a message');
    expect(JSON.parse(answer.out)).toEqual({
      args: ['session-list', '--json', 'a b', "c'd", ''],
      text: 'a message',
    });
    expect(answer.err).toBe('to stderr');
    expect(answer.code).toBe(23);
  });

  test('takes only ELECTRON_RUN_AS_NODE out of the environment', async () => {
    const dist = layLauncher();
    layProgram(
      dist,
      'process.stdout.write(JSON.stringify([process.env.ELECTRON_RUN_AS_NODE ?? null, process.env.KEPT]))',
    );
    expect(JSON.parse((await run(dist, [], { KEPT: 'yes' })).out)).toEqual([null, 'yes']);
  });

  test('finds the executable under its release name', async () => {
    const dist = layLauncher();
    layProgram(dist, "process.stdout.write('asset')", assetName(currentHost()));
    expect((await run(dist)).out).toBe('asset');
  });

  test('prefers the one beside it to SHADOWOB_CONNECTOR_BINARY, and takes that when there is none', async () => {
    const dist = layLauncher();
    layProgram(dist, "process.stdout.write('beside')");
    const elsewhere = newFolder();
    layProgram(elsewhere, "process.stdout.write('elsewhere')", 'other');
    const env = { SHADOWOB_CONNECTOR_BINARY: join(elsewhere, 'other') };
    expect((await run(dist, [], env)).out).toBe('beside');
    renameSync(join(dist, 'shadowob-connector'), join(dist, 'away'));
    expect((await run(dist, [], env)).out).toBe('elsewhere');
  });

  test('started through a link, as npm makes one, looks beside the real file', async () => {
    const dist = layLauncher();
    layProgram(dist, "process.stdout.write('real')");
    const bin = newFolder();
    symlinkSync(join(dist, 'cli.js'), join(bin, 'cli.js'));
    expect((await run(bin)).out).toBe('real');
  });

  test('without an executable says what to do, on stderr, and exits 41', async () => {
    const dist = layLauncher();
    // A folder of that name is no executable.
    mkdirSync(join(dist, 'shadowob-connector'));
    const answer = await run(dist, [], { SHADOWOB_CONNECTOR_BINARY: join(dist, 'absent') });
    expect(answer.code).toBe(41);
    expect(answer.out).toBe('');
    expect(answer.err).toContain(basename(dist));
    expect(answer.err).toContain('npm run build');
    expect(answer.err).toContain('SHADOWOB_CONNECTOR_BINARY');
  });

  test.each([
    ['may not be executed', 'not a program', 0o644],
    ['is for another system', '\x7fELF\x02\x01\x01 something else', 0o755],
  ])('with an executable that %s says so and exits 41', async (_what, content, mode) => {
    const dist = layLauncher();
    const file = join(dist, 'shadowob-connector');
    writeFileSync(file, content);
    chmodSync(file, mode);
    const answer = await run(dist);
    expect(answer.code).toBe(41);
    expect(answer.out).toBe('');
    expect(answer.err).toContain(`cannot start ${file}`);
  });

  test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'relays %s, and the executable decides how to end',
    async (signal) => {
      const dist = layLauncher();
      layProgram(
        dist,
        `process.on('${signal}', () => { process.stdout.write('got it\\n'); process.exit(7); }); ${FOREVER}`,
      );
      const child = start(dist);
      const after = await untilSaid(child, 'ready');
      child.kill(signal);
      expect(await after.rest()).toContain('got it');
      await child.exited;
      expect([child.exitCode, child.signalCode]).toEqual([7, null]);
    },
  );

  test.each(['SIGTERM', 'SIGKILL', 'SIGINT'] as const)(
    'ends by %s when the executable did',
    async (signal) => {
      const dist = layLauncher();
      layProgram(dist, `process.kill(process.pid, '${signal}'); setInterval(() => {}, 1000);`);
      const answer = await run(dist);
      expect(answer.signal).toBe(signal);
    },
  );

  test('nothing survives the end of its parent, even a sudden one', async () => {
    const dist = layLauncher();
    layProgram(dist, FOREVER);
    const app = `require('node:child_process').spawn(process.execPath, [${JSON.stringify(join(dist, 'cli.js'))}], { stdio: 'inherit' });`;
    const parent = Bun.spawn([NODE, '-e', app], { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' });
    started.push(parent);
    const after = await untilSaid(parent, 'ready');
    parent.kill('SIGKILL');
    // The stream ends only when the launcher and the executable are both gone.
    expect(await after.rest()).toBe('');
  });

  test('an executable that ignores SIGTERM is killed after its grace', async () => {
    const dist = layLauncher();
    layProgram(dist, `process.on('SIGTERM', () => process.stdout.write('no\\n')); ${FOREVER}`);
    const child = start(dist);
    const after = await untilSaid(child, 'ready');
    child.kill('SIGTERM');
    expect(await after.rest()).toBe('no\n');
    await child.exited;
    expect(child.signalCode).toBe('SIGKILL');
  });
});

describe('dist/cli.js with the real executable', () => {
  test('answers as the executable does', async () => {
    const dist = layLauncher();
    const binary = await compiledBinary();
    const direct = Bun.spawnSync([binary, '--version']).stdout.toString();
    const answer = await run(dist, ['--version'], { SHADOWOB_CONNECTOR_BINARY: binary });
    expect(answer).toEqual({ out: direct, err: '', code: 0, signal: null });
  });
});
