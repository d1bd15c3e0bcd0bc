/**
 * PowerShell is not on every machine that runs the tests, so these read the text of install.ps1. The release
 * workflow runs it on Windows, in both editions of PowerShell, before anything is published.
 */
import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { assetName, TARGETS } from '../../scripts/lib/targets.ts';

const SCRIPTS = resolve(import.meta.dir, '..', '..', 'scripts');
const text = readFileSync(join(SCRIPTS, 'install.ps1'), 'utf8');
const posix = readFileSync(join(SCRIPTS, 'install.sh'), 'utf8');

/** What follows the last function: that alone runs when the file is piped to `iex`. */
const afterLastFunction = text.slice(text.lastIndexOf('\n}\n') + 3).trim();

const at = (needle: string) => {
  const found = text.indexOf(needle);
  expect([needle, found >= 0]).toEqual([needle, true]);
  return found;
};

describe('install.ps1, by its text (not run here: needs PowerShell)', () => {
  test('names the assets that the table names', () => {
    at('"shadowob-connector-windows-$(Get-ShadowobArchitecture).exe"');
    const arches = [...text.matchAll(/\{ return '(x64|arm64)' \}/g)].map((match) => match[1]);
    const fromTable = TARGETS.filter((target) => target.os === 'windows').map(assetName);
    expect(arches.map((arch) => `shadowob-connector-windows-${arch}.exe`)).toEqual(fromTable);
  });

  test("asks for Windows' own processor type before the process', which emulation changes", () => {
    const machine = at("Session Manager\\Environment'");
    const wow = at('$env:PROCESSOR_ARCHITEW6432');
    const own = at('$env:PROCESSOR_ARCHITECTURE ');
    expect(machine).toBeLessThan(wow);
    expect(wow).toBeLessThan(text.lastIndexOf('$env:PROCESSOR_ARCHITECTURE'));
    expect(own).toBeGreaterThan(0);
    at('default { throw');
  });

  test('verifies before it runs, runs before it replaces, and cleans up whatever happens', () => {
    const body = at('function Install-ShadowobConnector');
    const steps = [
      'New-Item -ItemType Directory -Force -Path $work',
      'try {',
      '-Uri "$url/SHA256SUMS"',
      '-Uri "$url/$asset"',
      'Get-FileHash -LiteralPath $new -Algorithm SHA256',
      'if ($actual -ne $expected)',
      'Test-ShadowobRun $new',
      'Move-ShadowobIntoPlace $new $final $aside',
      '} finally {',
      'Remove-Item -LiteralPath $work -Recurse',
    ];
    const positions = steps.map((step) => text.indexOf(step, body));
    expect(positions).not.toContain(-1);
    expect(positions).toEqual([...positions].sort((a, b) => a - b));
  });

  test('puts the old executable back when the new one cannot take its place', () => {
    const mover = text.slice(at('function Move-ShadowobIntoPlace'), at('function Install-ShadowobConnector'));
    expect(mover).toMatch(/catch \{[^}]*Move-Item -LiteralPath \$aside -Destination \$final/);
    expect(mover).toContain('throw');
  });

  test('works in the folder of the destination, so the last step is a rename', () => {
    at('$work = Join-Path $dir ');
    at('$aside = Join-Path $dir ');
  });

  test('throws and never exits, which would close the window that it was piped into', () => {
    const code = text.replace(/<#[\s\S]*?#>/, '').replace(/^\s*#.*$/gm, '');
    expect(code).not.toMatch(/^\s*exit\b|[;{]\s*exit\b/m);
    expect(code).toContain("$ErrorActionPreference = 'Stop'");
  });

  test('does nothing when cut short: only its last line runs anything', () => {
    expect(afterLastFunction).toBe('Install-ShadowobConnector');
    const outside = text
      .replace(/<#[\s\S]*?#>/, '')
      .replace(/^function [\s\S]*?^\}$/gm, '')
      .replace(/^#.*$/gm, '')
      .trim();
    expect(outside).toBe('Install-ShadowobConnector');
  });

  test('changes no setting of the user: the PATH line is only shown', () => {
    const changes = text.split('\n').filter((line) => line.includes('SetEnvironmentVariable'));
    expect(changes).toHaveLength(1);
    expect(changes[0]).toMatch(/^\s*Write-Host /);
  });

  test('knows the same settings and the same releases as install.sh', () => {
    const names = (script: string) =>
      new Set(script.match(/SHADOWOB_CONNECTOR_(INSTALL_DIR|VERSION|DOWNLOAD_URL)/g));
    expect(names(text)).toEqual(names(posix));
    const base = 'https://github.com/shadowob/shadowob-connector/releases';
    expect([text.includes(base), posix.includes(base)]).toEqual([true, true]);
  });
});
