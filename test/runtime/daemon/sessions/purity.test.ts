import { expect, test } from 'bun:test';
import { join } from 'node:path';

const ENGINE = join(
  import.meta.dir,
  '..',
  '..',
  '..',
  '..',
  'src',
  'runtime',
  'daemon',
  'sessions',
  'engine.ts',
);

test('C-389 S-648: nothing that the engine is made of can open a file, look at a process or start one', async () => {
  const built = await Bun.build({ entrypoints: [ENGINE], target: 'bun', external: ['zod'] });
  const code = await built.outputs[0]?.text();
  expect(code).toContain('createSessionsEngine');
  const imports = [...(code ?? '').matchAll(/(?:from|require\(|import\()\s*"([^"]+)"/g)].map(
    ([, name]) => name,
  );
  expect(imports.filter((name) => name !== 'zod')).toEqual([]);
  expect(code).not.toMatch(/Bun\.(?:spawn|file|write|connect)|process\.(?:kill|env)/);
});
