import { afterAll, describe, expect, test } from 'bun:test';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openHookTrust } from '../../../src/adapters/codex/hook-trust.ts';

const folder = mkdtempSync(join(tmpdir(), 'hook-trust-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const HOOK = {
  key: '/h/hooks.json:stop:0:0',
  command: 'x',
  sourcePath: '/h/hooks.json',
  enabled: true,
  currentHash: 'sha256:1',
  trustStatus: 'untrusted',
};

/** An app-server that answers by method, and writes down what it is asked. */
function server(answers: Readonly<Record<string, unknown>>, first = '') {
  const heard = join(folder, `heard-${crypto.randomUUID()}`);
  const program = join(folder, `codex-${crypto.randomUUID()}`);
  const source = `#!${process.execPath}
const answers = ${JSON.stringify(answers)};
const { appendFileSync } = require('node:fs');
${first}
for await (const line of console) {
  appendFileSync(${JSON.stringify(heard)}, line + '\\n');
  const { id, method } = JSON.parse(line);
  if (id === undefined) continue;
  console.log(JSON.stringify({ method: 'noise/changed', params: {} }));
  console.log('no json');
  console.log(JSON.stringify({ id, ...answers[method] }));
}
`;
  writeFileSync(program, source, { mode: 0o755 });
  const open = () => openHookTrust({ program, env: { PATH: '/usr/bin:/bin' }, cwd: folder });
  const asked = () =>
    existsSync(heard)
      ? readFileSync(heard, 'utf8')
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line))
      : [];
  return { open, asked };
}

const hello = { result: { userAgent: 'x' } };

describe.skipIf(process.platform === 'win32')('T3 R-23: what Codex trusts, by Codex itself', () => {
  test('lists, skips what lacks a field, and has exactly the given hashes written', async () => {
    const codex = server({
      initialize: hello,
      'hooks/list': {
        result: {
          data: [{ cwd: folder, hooks: [HOOK, { key: 'half' }, 5], warnings: ['of\na file'] }, null],
        },
      },
      'config/batchWrite': { result: {} },
    });
    const trust = await codex.open();
    if (typeof trust === 'string') throw new Error(trust);
    const listed = await trust.list();
    if (typeof listed === 'string') throw new Error(listed);
    expect(listed.warnings).toEqual(['of a file']);
    expect(listed.hooks).toEqual([
      {
        key: HOOK.key,
        command: 'x',
        sourcePath: HOOK.sourcePath,
        enabled: true,
        trust: 'untrusted',
        hash: 'sha256:1',
      },
    ]);
    expect(await trust.trust(listed.hooks)).toBeUndefined();
    await trust.close();
    const asked = codex.asked();
    expect(asked.map((one) => one.method)).toEqual([
      'initialize',
      'initialized',
      'hooks/list',
      'config/batchWrite',
    ]);
    expect(asked[3].params).toEqual({
      edits: [
        {
          keyPath: 'hooks.state',
          value: { [HOOK.key]: { trusted_hash: 'sha256:1' } },
          mergeStrategy: 'upsert',
        },
      ],
      reloadUserConfig: true,
    });
  });

  test('its refusals are told in its own words', async () => {
    const codex = server({
      initialize: hello,
      'hooks/list': { error: { code: -32601, message: 'unknown method' } },
    });
    const trust = await codex.open();
    if (typeof trust === 'string') throw new Error(trust);
    expect(await trust.list()).toBe('Codex refused: unknown method');
    await trust.close();
  });

  test('a program that is not there, and one that ends at once, are told, and nothing is left running', async () => {
    const gone = await openHookTrust({ program: join(folder, 'gone'), env: {}, cwd: folder });
    expect(gone).toContain('could not be started');
    const broken = server({}, "process.stderr.write('not this version\\n'); process.exit(2);");
    expect(await broken.open()).toBe('Codex has ended: not this version');
  });
});
