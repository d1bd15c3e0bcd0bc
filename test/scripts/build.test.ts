import { beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { compiledBinary } from '../helpers/binary.ts';
import { tempFolders } from './temp.ts';

// A compile writes 110 MB.
setDefaultTimeout(120_000);

const ROOT = resolve(import.meta.dir, '..', '..');
const BUILDER = join(ROOT, 'scripts', 'build-binaries.ts');
const PROBE = join(import.meta.dir, 'probe-program.ts');
const EXE = process.platform === 'win32' ? '.exe' : '';
const newFolder = tempFolders('build');

async function run(command: readonly string[], cwd: string, env: Record<string, string> = {}) {
  const { NODE_ENV: _test, ...rest } = process.env;
  const child = Bun.spawn([...command], {
    cwd,
    env: { ...rest, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { out, err, code };
}

const build = (args: readonly string[], cwd = ROOT) => run([process.execPath, BUILDER, ...args], cwd);

/** A folder whose files take over a program that loads configuration from where it is started (B1). */
function hostileFolder(): string {
  const folder = newFolder();
  const files: Record<string, string> = {
    'x.ts': `globalThis.HOSTILE = true; require('node:fs').writeFileSync(${JSON.stringify(join(folder, 'pwned'))}, '');`,
    'bunfig.toml': 'preload = ["./x.ts"]\n[define]\n"process.env.SHADOWOB_CONNECTOR_HOME" = "\'evil\'"\n',
    '.env':
      'SHADOWOB_CONNECTOR_HOME=evil\nNODE_OPTIONS=--require ./x.ts\nBUN_OPTIONS=--preload ./x.ts\nBUN_BE_BUN=1\n',
    'package.json': '{"name":"evil","type":"commonjs","imports":{"#x":"./x.ts"}}',
    'tsconfig.json': '{"compilerOptions":{"paths":{"*":["./x.ts"]}}}',
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  for (const name of ['.env.local', '.env.production'])
    writeFileSync(join(folder, name), files['.env'] ?? '');
  return folder;
}

describe('the executable for this machine', () => {
  let out = '';
  let binary = '';
  beforeAll(async () => {
    out = newFolder();
    binary = join(out, `shadowob-connector${EXE}`);
    const built = await build(['--host', '--entry', PROBE, '--out-dir', out, '--commit', 'abc123']);
    expect(built.err).toBe('');
    expect(built.code).toBe(0);
  });

  test('lies beside the launcher, and nothing else does', () => {
    expect(readdirSync(out).sort()).toEqual(['cli.js', `shadowob-connector${EXE}`]);
    expect(readFileSync(join(out, 'cli.js'), 'utf8')).toBe(
      readFileSync(join(ROOT, 'scripts', 'cli.js'), 'utf8'),
    );
    if (process.platform !== 'win32') expect(statSync(binary).mode & 0o111).toBe(0o111);
  });

  test('knows its version, commit and target, and keeps its names', async () => {
    const manifest: { version: string } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const seen = JSON.parse((await run([binary], out)).out);
    expect(seen).toMatchObject({ version: manifest.version, commit: 'abc123', name: 'Named' });
    expect(seen.target).toMatch(/^(linux|darwin|windows)-(x64|arm64)(-musl)?$/);
  });

  test('loads nothing of the folder that it is started in, and needs no execArgv for it (B1, B2)', async () => {
    const folder = hostileFolder();
    const answer = await run([binary], folder);
    expect(answer.err).toBe('');
    expect(JSON.parse(answer.out)).toMatchObject({
      home: null,
      nodeOptions: null,
      bunOptions: null,
      preloaded: false,
      execArgv: [],
    });
    expect(existsSync(join(folder, 'pwned'))).toBe(false);
  });

  test("the same folder takes over a build with the compiler's defaults, so the test above can fail", async () => {
    const folder = hostileFolder();
    const plain = join(newFolder(), `plain${EXE}`);
    await run([process.execPath, 'build', '--compile', PROBE, '--outfile', plain], newFolder());
    const answer = await run([plain], folder);
    expect(JSON.parse(answer.out)).toMatchObject({ home: 'evil', preloaded: true });
    expect(existsSync(join(folder, 'pwned'))).toBe(true);
    rmSync(plain);
  });
});

describe('the real executable', () => {
  test('answers --version with the version alone on its first line, in a hostile folder too (B1)', async () => {
    const manifest: { version: string } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const folder = hostileFolder();
    const answer = await run([await compiledBinary(), '--version'], folder);
    expect(answer.err).toBe('');
    expect(answer.code).toBe(0);
    expect(answer.out.split('\n')[0]).toBe(manifest.version);
    expect(existsSync(join(folder, 'pwned'))).toBe(false);
  });

  test('is built once, also for two that ask at the same time', async () => {
    const script = `import { compiledBinary } from ${JSON.stringify(join(ROOT, 'test', 'helpers', 'binary.ts'))};
      console.log(await compiledBinary());`;
    const ask = () => run([process.execPath, '-e', script], ROOT);
    const answers = await Promise.all([ask(), ask(), ask()]);
    for (const answer of answers) expect(answer.err).toBe('');
    expect(new Set(answers.map((answer) => answer.out.trim())).size).toBe(1);
  });
});

describe('build-binaries.ts', () => {
  test('says what it needs when nothing was asked for', async () => {
    const answer = await build([]);
    expect(answer.code).toBe(1);
    expect(answer.err).toContain('--host, --all, --checksums or --target');
  });

  test('names the targets when one is unknown', async () => {
    const answer = await build(['--target', 'linux-ppc64']);
    expect(answer.code).toBe(1);
    expect(answer.err).toContain('linux-x64-musl');
  });

  test("passes on the bundler's words, and fails", async () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'broken.ts'), "import './absent.ts';\n");
    const answer = await build([
      '--host',
      '--entry',
      join(folder, 'broken.ts'),
      '--out-dir',
      join(folder, 'out'),
    ]);
    expect(answer.code).toBe(1);
    expect(answer.err).toContain('absent.ts');
  });

  test('--checksums sums the assets that are there and nothing else', async () => {
    const folder = join(newFolder(), 'dist');
    mkdirSync(folder);
    for (const name of ['shadowob-connector-linux-x64', 'shadowob-connector-windows-x64.exe', 'cli.js']) {
      writeFileSync(join(folder, name), name);
    }
    expect((await build(['--checksums', '--out-dir', folder])).code).toBe(0);
    const names = readFileSync(join(folder, 'SHA256SUMS'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.slice(66));
    expect(names).toEqual(['shadowob-connector-linux-x64', 'shadowob-connector-windows-x64.exe']);
  });
});
