import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { GENERATION, generationOf, headerOf } from '../../../src/install/extensions/generate.ts';
import { opencodePlugin } from '../../../src/install/extensions/opencode.ts';
import { piExtension } from '../../../src/install/extensions/pi.ts';

const ALL = [piExtension, opencodePlugin];

describe('the texts that we generate', () => {
  test('S-830: the first line is our header, and each runtime knows only its own', () => {
    for (const extension of ALL) {
      const text = extension.text('/h/daemon.sock', 'linux');
      expect(text.split('\n')[0]).toBe(headerOf(extension.runtimeId));
      expect(generationOf(text, extension.runtimeId)).toBe(GENERATION);
      expect(generationOf(text, 'another')).toBeUndefined();
    }
  });

  test('S-750: nothing is imported but Node’s own, nothing is printed, and no mark is left open', () => {
    for (const extension of ALL) {
      const text = extension.text('/h/daemon.sock', 'linux');
      const imports = [...text.matchAll(/from '([^']+)'/g)].map(([, name]) => name);
      expect(imports.every((name) => name?.startsWith('node:'))).toBe(true);
      expect(text).not.toMatch(/console\.|process\.std|@ADDRESS@|biome-ignore|link\.mjs/);
    }
  });

  test('Windows: the address is the pipe of the connector home (R-30)', () => {
    for (const extension of ALL) {
      const text = extension.text('C:\\Users\\First Last\\.shadowob\\connector\\daemon.sock', 'win32');
      expect(text).toMatch(/ADDRESS = "\\\\\\\\\.\\\\pipe\\\\shadowob-connector-[0-9a-f]{32}"/);
    }
  });

  test('C-331: any socket path is a whole string literal in it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (path) => {
        for (const extension of ALL) {
          const text = extension.text(path, 'linux');
          const line = text.split('\n').find((one) => one.startsWith('const ADDRESS = '));
          expect(JSON.parse(line?.slice('const ADDRESS = '.length, -1) ?? '')).toBe(path);
          expect(() => new Bun.Transpiler({ loader: 'ts' }).transformSync(text)).not.toThrow();
        }
      }),
      { numRuns: 25 },
    );
  });

  test('a first line that only looks like ours is somebody else’s', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(generationOf(text, 'pi')).toBeUndefined();
        expect(generationOf(`${text}\n${headerOf('pi')}`, 'pi')).toBeUndefined();
      }),
    );
    expect(generationOf(`\ufeff${headerOf('pi', 7)}\n`, 'pi')).toBe(7);
    expect(generationOf(headerOf('pi').replace('generation 1', 'generation x'), 'pi')).toBeUndefined();
  });
});
