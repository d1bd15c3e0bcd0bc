import { describe, expect, test } from 'bun:test';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { GENERATION } from '../../../src/install/extensions/generate.ts';
import { opencode } from '../../../src/install/hooks/opencode.ts';
import { pi } from '../../../src/install/hooks/pi.ts';
import { carryOut, stage } from './context.ts';

const EACH = [
  { name: 'pi', one: pi, file: '.pi/agent/extensions/shadowob-connector-sessions.ts' },
  { name: 'OpenCode', one: opencode, file: '.config/opencode/plugin/shadowob-connector.js' },
] as const;

for (const { name, one, file } of EACH) {
  describe(`${name}: a whole file of ours (S-830)`, () => {
    test('not on this computer: nothing is made, and that is said', async () => {
      using home = stage();
      expect(carryOut(await one.planInstall(home.context())).said).toContain('is not on this computer');
      expect(home.read(file)).toBeUndefined();
    });

    test('it is written once, private, and again only when something has changed (H5)', async () => {
      using home = stage();
      home.found('1.0.0');
      expect(carryOut(await one.planInstall(home.context())).kinds).toEqual(['written']);
      const text = home.read(file);
      expect(text).toContain('daemon.sock');
      if (process.platform !== 'win32') expect(statSync(join(home.home, file)).mode & 0o777).toBe(0o600);
      expect((await one.planInstall(home.context())).kind).toBe('nothing');
      expect(await one.status(home.context())).toMatchObject({
        installed: 'yes',
        trusted: 'unneeded',
        present: true,
      });
    });

    test('planning alone changes nothing, and shows the whole file as a diff', async () => {
      using home = stage();
      home.found('1.0.0');
      const plan = await one.planInstall(home.context());
      expect(plan.kind === 'changes' && plan.changes[0]?.diff).toContain(
        '+// shadowob-connector: generated for',
      );
      expect(home.read(file)).toBeUndefined();
    });

    test('an older or changed one of ours is renewed, and hooks-status says so before', async () => {
      using home = stage();
      home.found('1.0.0');
      carryOut(await one.planInstall(home.context()));
      const text = home.read(file) ?? '';
      for (const old of [text.replace(`generation ${GENERATION}.`, 'generation 0.'), `${text}// mine\n`]) {
        home.write(file, old);
        expect(await one.status(home.context())).toMatchObject({ installed: 'partly' });
        expect(carryOut(await one.planInstall(home.context())).kinds).toEqual(['written']);
        expect(home.read(file)).toBe(text);
      }
    });

    test('another connector home has another socket, and the file follows it (R-30)', async () => {
      using home = stage();
      home.found('1.0.0');
      carryOut(await one.planInstall(home.context()));
      const elsewhere = home.context({ connectorHome: join(home.home, 'elsewhere') });
      expect(carryOut(await one.planInstall(elsewhere)).kinds).toEqual(['written']);
      expect(home.read(file)).toContain(join(home.home, 'elsewhere', 'daemon.sock'));
    });

    test('a file without our header is never written and never removed', async () => {
      using home = stage();
      home.found('1.0.0');
      for (const text of ['', '// mine\n', '\n// shadowob-connector: generated for pi, generation 1. x']) {
        home.write(file, text);
        expect((await one.planInstall(home.context())).kind).toBe('refused');
        const plan = await one.planUninstall(home.context());
        expect(plan.kind).toBe('nothing');
        expect(carryOut(plan).said).toContain('is left as it is');
        expect(home.read(file)).toBe(text);
        expect(await one.status(home.context())).toMatchObject({ installed: 'no' });
      }
    });

    test('somebody who writes between plan and change wins (H12)', async () => {
      using home = stage();
      home.found('1.0.0');
      const install = await one.planInstall(home.context());
      home.write(file, '// mine\n');
      expect(carryOut(install).kinds).toEqual(['conflict']);
      expect(home.read(file)).toBe('// mine\n');
    });

    test('removing goes by the header alone, also where the program is gone', async () => {
      using home = stage();
      home.found('1.0.0');
      carryOut(await one.planInstall(home.context()));
      home.found();
      expect(carryOut(await one.planUninstall(home.context())).kinds).toEqual(['removed']);
      expect(home.read(file)).toBeUndefined();
      expect((await one.planUninstall(home.context())).kind).toBe('nothing');
    });
  });
}

describe('other places', () => {
  test('pi: $PI_CODING_AGENT_DIR, and --pi-agent-dir before it', async () => {
    using home = stage();
    const env = { PI_CODING_AGENT_DIR: join(home.home, 'by-env') };
    const options = { 'pi-agent-dir': 'by-option' };
    const files = async (more: object) => (await pi.status(home.context(more))).files;
    expect(await files({ env })).toEqual([
      join(home.home, 'by-env', 'extensions', 'shadowob-connector-sessions.ts'),
    ]);
    expect(await files({ env, options })).toEqual([
      join(home.home, 'by-option', 'extensions', 'shadowob-connector-sessions.ts'),
    ]);
  });

  test('OpenCode: OPENCODE_CONFIG_DIR, XDG_CONFIG_HOME where it is absolute, and the option before both', async () => {
    using home = stage();
    const files = async (more: object) => (await opencode.status(home.context(more))).files[0];
    const at = (...parts: string[]) => join(home.home, ...parts, 'plugin', 'shadowob-connector.js');
    expect(await files({ env: { XDG_CONFIG_HOME: join(home.home, 'xdg') } })).toBe(at('xdg', 'opencode'));
    expect(await files({ env: { XDG_CONFIG_HOME: 'relative' } })).toBe(at('.config', 'opencode'));
    const env = { OPENCODE_CONFIG_DIR: join(home.home, 'own') };
    expect(await files({ env })).toBe(at('own'));
    expect(await files({ env, options: { 'opencode-config-dir': 'x' } })).toBe(at('x'));
  });

  test('OpenCode waits for npm before its first plugin, which is said once', async () => {
    using home = stage();
    home.found('1.18.33');
    expect(carryOut(await opencode.planInstall(home.context())).said).toContain('npm');
    carryOut(await opencode.planUninstall(home.context()));
    home.write('.config/opencode/node_modules/x/package.json', '{}');
    expect(carryOut(await opencode.planInstall(home.context())).said).not.toContain('npm');
  });
});
