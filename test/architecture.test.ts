import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, resolve, sep } from 'node:path';

const ROOT = resolve(import.meta.dir, '..');
const SRC = join(ROOT, 'src');

function sources(): string[] {
  return readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => name.split(sep).join(posix.sep));
}

interface Import {
  readonly from: string;
  readonly to: string;
  readonly typeOnly: boolean;
  /** Loaded with its file: no types, and nothing that is imported on demand. */
  readonly eager: boolean;
}

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s+(type\s+)?(?:([^'";]*?)\sfrom\s+)?['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)/g;

function importsOf(file: string): Import[] {
  const text = readFileSync(join(SRC, file), 'utf8');
  return [...text.matchAll(IMPORT)].map((match) => {
    const [, type, clause, fixed, onDemand] = match;
    const spec = fixed ?? onDemand ?? '';
    const to = spec.startsWith('.')
      ? relative(SRC, resolve(dirname(join(SRC, file)), spec))
          .split(sep)
          .join(posix.sep)
      : spec;
    const typeOnly = type !== undefined;
    return { from: file, to, typeOnly, eager: fixed !== undefined && !typeOnly && !namesOnlyTypes(clause) };
  });
}

function namesOnlyTypes(clause: string | undefined): boolean {
  const names = clause?.startsWith('{') ? clause.replace(/[{}]/g, '').split(',') : undefined;
  return names?.every((name) => /^\s*(type\s|$)/.test(name)) ?? false;
}

const all = sources().flatMap(importsOf);
const layerOf = (file: string) => /^(runtime|adapters|install|commands)\//.exec(file)?.[1];

describe('who may import whom (design §5, R-33)', () => {
  const allowed: Record<string, readonly string[]> = {
    runtime: ['runtime'],
    adapters: ['adapters', 'runtime'],
    install: ['install', 'adapters', 'runtime'],
    commands: ['commands', 'install', 'adapters', 'runtime'],
  };

  for (const [layer, may] of Object.entries(allowed)) {
    test(`${layer} imports only ${may.join(', ')}`, () => {
      const wrong = all.filter((one) => {
        const target = layerOf(one.to);
        return layerOf(one.from) === layer && target !== undefined && !may.includes(target);
      });
      expect(wrong).toEqual([]);
    });
  }

  test('runtime/session imports only itself, and nothing of the outside world', () => {
    const inside = all.filter((one) => one.from.startsWith('runtime/session/'));
    expect(inside.length).toBeGreaterThan(5);
    expect(inside.filter((one) => !one.to.startsWith('runtime/session/'))).toEqual([]);
  });

  test('runtime/session asks no clock, file, process or network', () => {
    const world =
      /\b(Date\.now|new Date\(\)|performance\.now|process\.|Bun\.|fetch\(|setTimeout|setInterval|Math\.random)/;
    const wrong = sources()
      .filter((file) => file.startsWith('runtime/session/'))
      .filter((file) => world.test(readFileSync(join(SRC, file), 'utf8')));
    expect(wrong).toEqual([]);
  });

  test('main.ts imports nothing at its start but the version', () => {
    const eager = readFileSync(join(SRC, 'main.ts'), 'utf8').match(/^import .*$/gm);
    expect(eager).toEqual([
      "import { writeSync } from 'node:fs';",
      "import { versionText } from './version.ts';",
    ]);
  });

  test('a list loads no schema library: it takes longer than a list of a hundred sessions', () => {
    const roots = ['commands/cli.ts', 'commands/session-list.ts', 'adapters/all.ts'];
    const loaded = new Set<string>();
    const load = (file: string): void => {
      if (loaded.has(file)) return;
      loaded.add(file);
      for (const { from, to, eager } of all) if (from === file && eager) load(to);
    };
    roots.forEach(load);
    expect(loaded.size).toBeGreaterThan(100);
    expect([...loaded].filter((name) => /^(zod|yaml|toml-eslint-parser|diff|unstorage)/.test(name))).toEqual(
      [],
    );
  });

  test('only the output folder and the entry write to stdout', () => {
    const writers = sources().filter((file) => {
      const text = readFileSync(join(SRC, file), 'utf8');
      return (
        /process\.stdout\.write|Bun\.stdout|console\.(log|info)\(|writeSync\(1,/.test(text) &&
        !file.startsWith('commands/output/')
      );
    });
    expect(writers).toEqual(['main.ts']);
  });
});

describe('what no file may hold', () => {
  test('no default export, no `any`, no unfinished work', () => {
    // A declaration file says what the bundler gives for an embedded text: a default, by its own rule.
    const ours = sources().filter((file) => !file.endsWith('.d.ts'));
    const wrong = ours.flatMap((file) => {
      const text = readFileSync(join(SRC, file), 'utf8');
      const marks = ['export default', 'as any', '@ts-ignore', '@ts-expect-error', 'TO' + 'DO', 'FIX' + 'ME'];
      return marks.filter((mark) => text.includes(mark)).map((mark) => `${file}: ${mark}`);
    });
    expect(wrong).toEqual([]);
  });
});
