import { describe, expect, test } from 'bun:test';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { SIGNING_IDENTIFIER } from '../../scripts/lib/sign.ts';
import { TARGETS, targetName } from '../../scripts/lib/targets.ts';

const FOLDER = resolve(import.meta.dir, '..', '..', '.github', 'workflows');

const stepSchema = z.object({ uses: z.string().optional(), run: z.string().optional() });
const jobSchema = z.object({
  needs: z.string().optional(),
  'timeout-minutes': z.number(),
  permissions: z.record(z.string(), z.string()).optional(),
  strategy: z.object({ matrix: z.record(z.string(), z.unknown()) }).optional(),
  steps: z.array(stepSchema),
});
const workflowSchema = z.object({
  permissions: z.record(z.string(), z.string()),
  jobs: z.record(z.string(), jobSchema),
});

const names = readdirSync(FOLDER).filter((name) => name.endsWith('.yml'));
const textOf = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
const workflow = (name: string) => workflowSchema.parse(Bun.YAML.parse(textOf(name)));
const job = (file: string, name: string) => {
  const found = workflow(file).jobs[name];
  if (!found) throw new Error(`${file} has no job ${name}`);
  return found;
};
const runsOf = (file: string, name: string) => job(file, name).steps.flatMap((step) => step.run ?? []);

describe.each(names)('%s', (name) => {
  test('pins each action to a commit, and says which version that is', () => {
    const lines = textOf(name)
      .split('\n')
      .filter((line) => /^\s*-?\s*uses:/.test(line));
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) expect(line).toMatch(/uses: [\w.-]+\/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test('may read the repository and nothing else unless a job says so; every job has an end', () => {
    expect(workflow(name).permissions).toEqual({ contents: 'read' });
  });
});

describe('ci.yml', () => {
  test('runs the gate, the build and what was built on Linux, macOS and Windows', () => {
    const tested = job('ci.yml', 'test');
    expect(tested.strategy?.matrix['os']).toEqual(['ubuntu-latest', 'macos-latest', 'windows-latest']);
    const runs = runsOf('ci.yml', 'test').join('\n');
    for (const command of [
      'bash .ci/run',
      'npm run build',
      './dist/shadowob-connector --version',
      'node dist/cli.js',
    ]) {
      expect(runs).toContain(command);
    }
  });
});

describe('release.yml', () => {
  const order = (names: readonly string[]) =>
    names.slice(1).every((name, index) => job('release.yml', name).needs === names[index]);

  test('signs, sums, smoke-runs and attests in that order, and publishes last (I3)', () => {
    expect(order(['verify', 'build', 'checksums', 'smoke', 'publish'])).toBe(true);
    const steps = job('release.yml', 'publish').steps;
    const attest = steps.findIndex((step) => step.uses?.startsWith('actions/attest-build-provenance@'));
    const publish = steps.findIndex((step) => step.run?.includes('gh release create'));
    expect(attest).toBeGreaterThanOrEqual(0);
    expect(attest).toBeLessThan(publish);
    expect(steps[publish]?.run).toContain('--draft');
  });

  test('builds every target of the table once', () => {
    const text = JSON.stringify(job('release.yml', 'build').strategy);
    const built = [...text.matchAll(/--target ([\w-]+)/g)].map((match) => match[1]);
    expect(built.sort()).toEqual(TARGETS.map(targetName).sort());
    expect(runsOf('release.yml', 'checksums').join('\n')).toContain(`-eq ${TARGETS.length}`);
  });

  test('looks on macOS whether the signature is ours (B4)', () => {
    expect(runsOf('release.yml', 'build').join('\n')).toContain(`Identifier=${SIGNING_IDENTIFIER}`);
  });

  test('installs the bytes with the installers on every system, Alpine too', () => {
    const systems = job('release.yml', 'smoke').strategy?.matrix['os'];
    expect(systems).toEqual([
      'ubuntu-latest',
      'ubuntu-24.04-arm',
      'macos-15',
      'macos-15-intel',
      'windows-latest',
      'windows-11-arm',
    ]);
    const runs = runsOf('release.yml', 'smoke').join('\n');
    for (const command of ['dist/install.sh', 'dist/install.ps1', 'scripts/smoke-alpine.sh']) {
      expect(runs).toContain(command);
    }
  });

  test('only the last job may write', () => {
    for (const [name, { permissions }] of Object.entries(workflow('release.yml').jobs)) {
      const expected = { contents: 'write', 'id-token': 'write', attestations: 'write' };
      expect([name, permissions]).toEqual([name, name === 'publish' ? expected : undefined]);
    }
  });
});
