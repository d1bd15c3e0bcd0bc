import { afterEach, describe, expect, test } from 'bun:test';
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRepoLookup, type RepoFiles } from '../../../../src/runtime/daemon/sessions/repo.ts';
import { run } from '../../../../src/runtime/process/spawn.ts';
import { createCleanup, tempFolder } from '../harness.ts';
import { fakeClock } from './dsl.ts';

const cleanup = createCleanup();
afterEach(() => cleanup.run());

const git = Bun.which('git');
async function runGit(cwd: string, ...args: string[]): Promise<void> {
  const identity = ['-c', 'user.name=t', '-c', 'user.email=t@example.com', '-c', 'init.defaultBranch=main'];
  const result = await run({ argv: [git ?? '', ...identity, ...args], cwd, timeoutMs: 20_000 });
  if (result.kind !== 'exited' || result.code !== 0) throw new Error(`git ${args.join(' ')} failed`);
}

const lookup = () => createRepoLookup({ clock: fakeClock() });

describe('the name of a repository (S-013)', () => {
  test.skipIf(!git)(
    'C-028: real git: work tree, sub-folder, linked worktree, bare, worktree of a bare, submodule',
    async () => {
      const root = tempFolder(cleanup);
      const main = join(root, 'web');
      mkdirSync(join(main, 'src', 'deep'), { recursive: true });
      await runGit(main, 'init', '-q');
      writeFileSync(join(main, 'a'), 'a');
      await runGit(main, 'add', '.');
      await runGit(main, 'commit', '-qm', 'a');
      await runGit(main, 'worktree', 'add', '-q', join(root, 'elsewhere', 'tree'));
      await runGit(root, 'clone', '-q', '--bare', main, join(root, 'thing.git'));
      await runGit(join(root, 'thing.git'), 'worktree', 'add', '-q', join(root, 'of-bare'));
      await runGit(
        main,
        '-c',
        'protocol.file.allow=always',
        'submodule',
        'add',
        '-q',
        join(root, 'thing.git'),
        'vendored',
      );
      mkdirSync(join(root, 'plain', 'folder'), { recursive: true });
      const names = lookup();
      const cases: [string, string | undefined][] = [
        [main, 'web'],
        [join(main, 'src', 'deep'), 'web'],
        [`${main}/`, 'web'],
        [join(main, '.git', 'hooks'), 'web'],
        [join(root, 'elsewhere', 'tree'), 'web'],
        [join(root, 'thing.git'), 'thing'],
        [join(root, 'of-bare'), 'thing'],
        [join(main, 'vendored'), 'vendored'],
        [join(root, 'plain', 'folder'), undefined],
        [join(root, 'not', 'there'), undefined],
      ];
      for (const [cwd, name] of cases) expect([cwd, await names.nameOf(cwd)]).toEqual([cwd, name]);
    },
    30_000,
  );

  test('what only looks like a repository is none, and hides none above it', async () => {
    const root = tempFolder(cleanup);
    const above = join(root, 'above');
    for (const part of ['objects', 'refs']) mkdirSync(join(above, '.git', part), { recursive: true });
    writeFileSync(join(above, '.git', 'HEAD'), 'ref: refs/heads/main\n');
    mkdirSync(join(above, 'empty', '.git'), { recursive: true });
    mkdirSync(join(above, 'junk'));
    writeFileSync(join(above, 'junk', '.git'), 'hello\n');
    expect(await lookup().nameOf(join(above, 'empty'))).toBe('above');
    expect(await lookup().nameOf(join(above, 'junk'))).toBe('above');
  });

  test('C-399 S-906: relative, hostile and endless paths name nothing and throw nothing', async () => {
    for (const cwd of [
      '',
      '.',
      '../..',
      'a/b',
      '/\0/etc',
      `/${'x/'.repeat(3_000)}`,
      `/${'y'.repeat(4_096)}`,
      '/etc/passwd/x',
    ]) {
      expect(await lookup().nameOf(cwd)).toBeUndefined();
    }
  });

  test.skipIf(process.getuid?.() === 0)(
    'C-028: a folder that may not be read is no repository, and no error',
    async () => {
      const root = mkdtempSync(join(tmpdir(), 'sc-'));
      cleanup.add(() => chmodSync(root, 0o700));
      chmodSync(root, 0);
      expect(await lookup().nameOf(join(root, 'x'))).toBeUndefined();
    },
  );

  test('S-938: a failure is logged as one, and the session has no repository', async () => {
    const lines: string[] = [];
    const broken: RepoFiles = {
      kind: () => Promise.reject(new Error('EIO')),
      head: async () => undefined,
    };
    const names = createRepoLookup({
      clock: fakeClock(),
      files: broken,
      log: (_level, event) => void lines.push(event),
    });
    expect(await names.nameOf('/p')).toBeUndefined();
    expect(lines).toEqual(['repo_lookup_failed']);
  });

  test('C-029 K-38: the cache holds at most 256 folders, answers for a minute, and is right after it overflowed', async () => {
    const clock = fakeClock();
    const looks = { count: 0 };
    const repos = new Set(['/r0/.git']);
    const names = createRepoLookup({
      clock,
      files: {
        async kind(path) {
          if (path.endsWith('/.git')) looks.count += 1;
          if (path.endsWith('HEAD')) return repos.has(path.slice(0, -5)) ? 'file' : 'missing';
          if (/(objects|refs)$/.test(path)) return 'folder';
          return repos.has(path) ? 'folder' : 'missing';
        },
        head: async () => undefined,
      },
    });
    for (let n = 0; n < 300; n += 1) {
      await names.nameOf(`/r${n}`);
      expect(names.cached).toBeLessThanOrEqual(256);
    }
    expect(await names.nameOf('/r0')).toBe('r0');
    const before = looks.count;
    await Promise.all([names.nameOf('/r0'), names.nameOf('/r299')]);
    expect(looks.count).toBe(before);
    expect(await names.nameOf('/r299')).toBeUndefined();
    repos.add('/r299/.git');
    clock.plus(61);
    expect(await names.nameOf('/r299')).toBe('r299');
  });
});
