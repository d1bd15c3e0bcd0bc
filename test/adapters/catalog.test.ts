import { describe, expect, test } from 'bun:test';
import {
  BRIDGES,
  CATALOG,
  entryOf,
  installCommandOf,
  installCommandsOf,
  isProcessOf,
  labelOf,
} from '../../src/adapters/catalog.ts';

const PLATFORMS = ['darwin', 'linux', 'win32', 'freebsd'] as const;

function entry(id: string) {
  const found = entryOf(id);
  if (found === undefined) throw new Error(`no entry ${id}`);
  return found;
}

describe('the catalog (targets.md §1, R-41)', () => {
  test('the nine in the order of the heartbeat, then pi, local only', () => {
    expect(CATALOG.map(({ id, label, kind }) => [id, label, kind])).toEqual([
      ['openclaw', 'OpenClaw', 'openclaw'],
      ['hermes', 'Hermes Agent', 'cli'],
      ['claude-code', 'Claude Code', 'cli'],
      ['codex', 'Codex CLI', 'cli'],
      ['opencode', 'OpenCode', 'cli'],
      ['cursor', 'Cursor CLI', 'cli'],
      ['kimi', 'Kimi Code', 'cli'],
      ['copilot', 'GitHub Copilot CLI', 'cli'],
      ['antigravity', 'Antigravity CLI', 'cli'],
      ['pi', 'pi', 'cli'],
    ]);
    expect(CATALOG.filter(({ localOnly }) => localOnly).map(({ id }) => id)).toEqual(['pi']);
    expect(BRIDGES.map(({ id }) => id)).toEqual(['cc-connect']);
  });

  test('icon is the id; help is the documented address', () => {
    for (const known of [...CATALOG, ...BRIDGES]) {
      expect(known.iconId).toBe(known.id);
      expect(URL.canParse(known.helpUrl)).toBe(true);
    }
    expect(entry('opencode').helpUrl).toBe('https://opencli.co/cli/opencode');
    expect(entry('antigravity').helpUrl).toBe('https://www.antigravity.google/product/antigravity-cli');
  });

  test('a version probe asks in one form, so that no program takes a word for a prompt', () => {
    for (const known of [...CATALOG, ...BRIDGES]) expect(known.versionArguments).toEqual(['--version']);
  });

  test('editors are known as such', () => {
    const editors = CATALOG.flatMap(({ binaries }) =>
      binaries.filter(({ editor }) => editor).map(({ name }) => name),
    );
    expect(editors).toEqual(['cursor', 'antigravity']);
  });

  test('labels of ids, also of unknown ones', () => {
    expect(['codex', 'cc-connect', 'nobody'].map(labelOf)).toEqual([
      'Codex CLI',
      'cc-connect Bridge',
      'nobody',
    ]);
  });
});

describe('install commands', () => {
  test('the table of targets.md §1', () => {
    const of = (id: string, platform: NodeJS.Platform) => installCommandsOf(entry(id), platform);
    expect(of('openclaw', 'darwin')).toEqual([
      'curl -fsSL https://openclaw.ai/install.sh | bash -s -- --no-onboard',
    ]);
    expect(of('openclaw', 'win32').join()).toMatch(/https:\/\/openclaw\.ai\/install\.ps1.* -NoOnboard/);
    expect(of('claude-code', 'linux')).toEqual(['curl -fsSL https://claude.ai/install.sh | bash']);
    expect(of('claude-code', 'freebsd')).toEqual(['npm install -g @anthropic-ai/claude-code']);
    for (const platform of PLATFORMS) expect(of('codex', platform)).toEqual(['npm install -g @openai/codex']);
    expect(of('opencode', 'win32')).toEqual(['npm install -g opencode-ai']);
    expect(of('cursor', 'win32').join()).toContain('wsl.exe bash -lc');
    expect(of('hermes', 'freebsd')).toEqual(['pipx install hermes-agent']);
    expect(of('copilot', 'linux')).toEqual([
      'brew install copilot-cli',
      'curl -fsSL https://gh.io/copilot-install | bash',
    ]);
    expect(of('copilot', 'win32')).toEqual([
      'winget install GitHub.Copilot',
      'npm install -g @github/copilot',
    ]);
    for (const id of ['kimi', 'copilot', 'antigravity']) expect(of(id, 'freebsd')).toEqual([]);
  });

  test('Hermes on Linux gets xz first', () => {
    expect(installCommandOf(entry('hermes'), 'linux')).toMatch(
      /^command -v xz .* curl -fsSL https:\/\/hermes-agent/,
    );
  });

  test('one line: alternatives by ||, none is null', () => {
    expect(installCommandOf(entry('copilot'), 'darwin')).toBe(
      'brew install copilot-cli || curl -fsSL https://gh.io/copilot-install | bash',
    );
    expect(installCommandOf(entry('kimi'), 'freebsd')).toBeNull();
  });

  test('case 1: every string within the limits of the heartbeat, on every system', () => {
    for (const known of CATALOG) {
      expect(known.label.length).toBeLessThanOrEqual(80);
      expect(known.helpUrl.length).toBeLessThanOrEqual(500);
      for (const platform of PLATFORMS) {
        expect(installCommandOf(known, platform)?.length ?? 0).toBeLessThanOrEqual(500);
        expect(installCommandsOf(known, platform).length).toBeLessThanOrEqual(8);
      }
    }
  });

  test.skipIf(process.platform === 'win32')('every POSIX command is a sentence of sh', () => {
    for (const known of CATALOG) {
      for (const platform of ['darwin', 'linux'] as const) {
        const line = installCommandOf(known, platform) ?? ':';
        expect([known.id, Bun.spawnSync(['sh', '-n', '-c', line]).exitCode]).toEqual([known.id, 0]);
      }
    }
  });
});

describe('homes', () => {
  test.each([
    ['openclaw', {}, '/h/.openclaw', { OPENCLAW_STATE_DIR: '/x' }],
    ['hermes', {}, '/h/.hermes', { HERMES_HOME: '/x' }],
    ['claude-code', {}, '/h/.claude', { CLAUDE_CONFIG_DIR: '/x' }],
    ['codex', {}, '/h/.codex', { CODEX_HOME: '/x' }],
    ['opencode', {}, '/h/.local/share/opencode', { OPENCODE_DATA_DIR: '/x' }],
    ['kimi', {}, '/h/.kimi-code', { KIMI_CODE_HOME: '/x' }],
    ['copilot', {}, '/h/.copilot', { COPILOT_HOME: '/x' }],
    ['pi', {}, '/h/.pi/agent', { PI_CODING_AGENT_DIR: '/x' }],
  ] as const)('%s: default and variable', (id, none, expected, named) => {
    expect(entry(id).homes(none, '/h', 'linux')[0]).toBe(expected);
    expect(entry(id).homes(named, '/h', 'linux')).toEqual(['/x']);
  });

  test('an empty variable counts as unset', () => {
    expect(entry('codex').homes({ CODEX_HOME: '' }, '/h', 'linux')).toEqual(['/h/.codex']);
  });

  test('Windows, and older places', () => {
    const env = { LOCALAPPDATA: 'C:\\L', APPDATA: 'C:\\R' };
    expect(entry('hermes').homes(env, 'C:\\U', 'win32')).toEqual(['C:\\L\\hermes']);
    expect(entry('opencode').homes(env, 'C:\\U', 'win32')).toEqual([
      'C:\\U\\.local\\share\\opencode',
      'C:\\R\\opencode',
    ]);
    expect(entry('claude-code').homes(env, 'C:\\U', 'win32')).toEqual(['C:\\U\\.claude']);
    expect(entry('kimi').homes({}, '/h', 'linux')).toEqual(['/h/.kimi-code', '/h/.kimi']);
    expect(entry('opencode').homes({ XDG_DATA_HOME: '/d' }, '/h', 'linux')).toEqual(['/d/opencode']);
  });

  test('cc-connect: the variable, else the pinned build in the connector home', () => {
    const paths = entry('cc-connect').knownPaths;
    expect(paths?.({ SHADOWOB_CC_CONNECT_BIN: '/b' }, '/h', 'linux')).toEqual(['/b']);
    expect(paths?.({}, '/h', 'linux')).toEqual(['/h/.shadowob/connector/cc-connect/398af9c/bin/cc-connect']);
    expect(paths?.({ SHADOWOB_CC_CONNECT_HOME: '/c' }, '/h', 'win32')).toEqual([
      '/c/398af9c/bin/cc-connect.exe',
    ]);
  });
});

describe('isProcessOf', () => {
  const cases: [string, string, string[], boolean][] = [
    ['claude-code', 'claude', ['claude', '--resume', 'x'], true],
    ['claude-code', 'node', ['/usr/bin/node', '--no-warnings', '/home/u/.nvm/bin/claude', '-p'], true],
    ['claude-code', 'claude.exe', ['/x/@anthropic-ai/claude-code/bin/claude.exe'], true],
    ['claude-code', 'vim', ['vim', 'claude-notes.md', '--resume', 'x'], false],
    ['claude-code', 'vim', ['vim', 'claude'], false],
    ['openclaw', 'openclaw-gateway', ['openclaw-gateway'], true],
    ['hermes', 'python3.14', ['/opt/h/bin/python3.14', '/home/u/.local/bin/hermes', 'gateway'], true],
    ['codex', 'codex', ['C:\\npm\\codex.exe', 'exec'], true],
    ['pi', 'node', ['node', '/usr/bin/pi'], true],
    ['pi', 'pip', ['pip', 'install'], false],
    ['pi', 'node', ['node'], false],
    ['cursor', 'cursor', ['cursor', '.'], false],
  ];
  test.each(cases)('%s: comm %s, argv %p -> %p', (id, comm, argv, expected) => {
    expect(isProcessOf(entry(id), { comm, argv })).toBe(expected);
  });
});
