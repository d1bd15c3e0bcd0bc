import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { BRIDGES, CATALOG } from '../../src/adapters/catalog.ts';
import {
  type ReadinessInput,
  type ReadinessInstance,
  type RuntimeReadiness,
  readinessOf,
} from '../../src/adapters/readiness.ts';

const INSTALLED = { installState: 'installed', versionState: 'known', scanError: null } as const;
const MISSING = { installState: 'missing', versionState: null, scanError: null } as const;
const EDITOR = { installState: 'installed', versionState: 'editor', scanError: null } as const;
const SLOW = {
  installState: 'installed',
  versionState: 'slow',
  scanError: 'installed, version unknown (slow): x',
} as const;
const BROKEN = {
  installState: 'installError',
  versionState: 'failed',
  scanError: 'codex ended with code 1',
} as const;

const SERVER = [
  'sessionList',
  'sessionHistory',
  'liveWatch',
  'sendMessage',
  'sendAsync',
  'abort',
  'approval',
  'nativeStatus',
];
const PROCESS = ['sessionList', 'sessionHistory', 'liveWatch', 'processWatch', 'sendMessage', 'abort'];
const OWNED = ['connectorOwnedOnly', 'sendMessage'];

function instance(
  status: ReadinessInstance['status'],
  capabilities: readonly string[],
  error?: string,
): ReadinessInstance {
  return { status, capabilities, ...(error === undefined ? {} : { error }) };
}

const files = instance('available', ['sessionList', 'sessionHistory']);
const liveFiles = instance('running', ['sessionList', 'sessionHistory', 'liveWatch', 'processWatch']);
const server = instance('running', SERVER);

/** given, then `[integration, monitor, push, readiness]` and the scoped words. */
type Row = [
  string,
  Partial<ReadinessInput> & { runtimeId: string },
  [
    RuntimeReadiness['integrationState'],
    RuntimeReadiness['monitorState'],
    RuntimeReadiness['pushState'],
    RuntimeReadiness['readiness'],
  ],
  string[],
];

const MATRIX: Row[] = [
  // OpenClaw: Ready only when its gateway answers.
  [
    'OpenClaw, gateway answers',
    { runtimeId: 'openclaw', capabilities: SERVER, instances: [server] },
    ['ready', 'watching', 'available', 'Ready'],
    ['Ready for monitoring', 'Ready for push'],
  ],
  [
    'OpenClaw, gateway stopped',
    { runtimeId: 'openclaw', capabilities: SERVER, instances: [instance('stopped', [])] },
    ['unconfigured', 'unavailable', 'unavailable', 'Needs setup'],
    ['Monitoring not enabled', 'Push not enabled'],
  ],
  [
    'OpenClaw, no gateway, plugin configured',
    { runtimeId: 'openclaw', capabilities: SERVER, instances: [], buddy: 'configured' },
    ['unconfigured', 'unavailable', 'unavailable', 'Needs setup'],
    ['Monitoring not enabled', 'Push not enabled'],
  ],
  [
    'OpenClaw, only the binary',
    { runtimeId: 'openclaw', capabilities: SERVER, instances: [instance('missing', [])] },
    ['unconfigured', 'unavailable', 'unavailable', 'Installed'],
    ['Monitoring not enabled', 'Push not enabled'],
  ],
  [
    'OpenClaw, gateway refuses us',
    { runtimeId: 'openclaw', capabilities: SERVER, instances: [instance('error', [], 'wrong token')] },
    ['error', 'error', 'error', 'Needs setup'],
    ['Monitoring failed', 'Push failed'],
  ],
  // Hermes: Buddy chat by the plugin, sessions limited without a server of its own.
  [
    'Hermes, plugin configured',
    { runtimeId: 'hermes', capabilities: ['sessionList'], instances: [files], buddy: 'configured' },
    ['ready', 'available', 'none', 'Ready'],
    ['Ready for Buddy chat', 'Session list only', 'Push not available yet'],
  ],
  [
    'Hermes, sessions only',
    {
      runtimeId: 'hermes',
      capabilities: ['sessionList', 'sendMessage', 'connectorOwnedOnly'],
      instances: [files],
    },
    ['unconfigured', 'available', 'connectorOwnedOnly', 'Limited'],
    ['Session list only', 'Ready for connector-owned sessions'],
  ],
  [
    'Hermes, API server of ours',
    { runtimeId: 'hermes', capabilities: SERVER, instances: [files, server] },
    ['ready', 'watching', 'available', 'Ready'],
    ['Ready for monitoring', 'Ready for push'],
  ],
  [
    'Hermes, only the binary',
    { runtimeId: 'hermes', capabilities: ['sessionList'], instances: [] },
    ['unconfigured', 'unavailable', 'none', 'Installed'],
    ['Monitoring not enabled', 'Push not available yet'],
  ],
  // cc-connect: Ready when its bridge runs and lets us in.
  [
    'cc-connect, bridge runs',
    { runtimeId: 'cc-connect', capabilities: SERVER, instances: [server] },
    ['ready', 'watching', 'available', 'Ready'],
    ['Ready for monitoring', 'Ready for push'],
  ],
  [
    'cc-connect, bridge stopped',
    {
      runtimeId: 'cc-connect',
      capabilities: SERVER,
      instances: [instance('stopped', [])],
      buddy: 'configured',
    },
    ['unconfigured', 'unavailable', 'unavailable', 'Needs setup'],
    ['Monitoring not enabled', 'Push not enabled'],
  ],
  // Claude Code: resume push when signed in; open terminals stay limited.
  [
    'Claude Code, signed in',
    { runtimeId: 'claude-code', capabilities: PROCESS, instances: [files], auth: 'ok' },
    ['ready', 'available', 'requiresResumeProcess', 'Ready'],
    ['Session list only', 'Ready for resume push', 'Limited for sessions open in a terminal'],
  ],
  [
    'Claude Code, a session runs',
    { runtimeId: 'claude-code', capabilities: PROCESS, instances: [liveFiles] },
    ['ready', 'watching', 'requiresResumeProcess', 'Ready'],
    ['Ready for monitoring', 'Ready for resume push', 'Limited for sessions open in a terminal'],
  ],
  [
    'Claude Code, sign-in unknown',
    { runtimeId: 'claude-code', capabilities: PROCESS, instances: [files] },
    ['degraded', 'available', 'requiresResumeProcess', 'Limited'],
    ['Session list only', 'Resume push after sign-in', 'Sign-in not checked'],
  ],
  [
    'Claude Code, signed out',
    { runtimeId: 'claude-code', capabilities: PROCESS, instances: [files], auth: 'missing' },
    ['unconfigured', 'available', 'unavailable', 'Needs setup'],
    ['Session list only', 'Push not enabled', 'Sign-in needed'],
  ],
  // Codex: process-owned jobs after sign-in; limited without an inventory.
  [
    'Codex, signed in',
    { runtimeId: 'codex', capabilities: PROCESS, instances: [files], auth: 'ok' },
    ['ready', 'available', 'requiresResumeProcess', 'Ready'],
    ['Session list only', 'Ready for resume push'],
  ],
  [
    'Codex, no inventory',
    { runtimeId: 'codex', capabilities: ['sendMessage'], instances: [], auth: 'ok' },
    ['ready', 'none', 'requiresResumeProcess', 'Limited'],
    ['Monitoring not available yet', 'Ready for resume push'],
  ],
  [
    'Codex, its app-server takes messages',
    { runtimeId: 'codex', capabilities: [...PROCESS, 'sendAsync'], instances: [instance('running', SERVER)] },
    ['ready', 'watching', 'available', 'Ready'],
    ['Ready for monitoring', 'Ready for push'],
  ],
  // OpenCode: Ready only when its server answers, Limited with its store alone; Installed when only the CLI exists.
  [
    'OpenCode, server answers',
    { runtimeId: 'opencode', capabilities: SERVER, instances: [server] },
    ['ready', 'watching', 'available', 'Ready'],
    ['Ready for monitoring', 'Ready for push'],
  ],
  [
    'OpenCode, only the CLI and its database',
    { runtimeId: 'opencode', capabilities: SERVER, instances: [files] },
    ['unconfigured', 'available', 'requiresResumeProcess', 'Limited'],
    ['Session list only', 'Ready for resume push'],
  ],
  [
    'OpenCode, only the CLI',
    { runtimeId: 'opencode', capabilities: SERVER, instances: [instance('missing', [])] },
    ['unconfigured', 'unavailable', 'requiresResumeProcess', 'Installed'],
    ['Monitoring not enabled', 'Ready for resume push'],
  ],
  [
    'OpenCode, one server of two fails',
    { runtimeId: 'opencode', capabilities: SERVER, instances: [server, instance('error', [], '401')] },
    ['degraded', 'watching', 'available', 'Ready'],
    ['Ready for monitoring', 'Ready for push'],
  ],
  // Cursor: Ready when signed in; Limited if only the editor exists.
  [
    'Cursor, signed in',
    { runtimeId: 'cursor', capabilities: ['sendMessage', 'connectorOwnedOnly'], instances: [], auth: 'ok' },
    ['ready', 'connectorOwnedOnly', 'requiresResumeProcess', 'Ready'],
    ['Monitoring of connector-owned sessions only', 'Ready for resume push'],
  ],
  [
    'Cursor, only the editor',
    { runtimeId: 'cursor', capabilities: ['sendMessage'], instances: [], installation: EDITOR },
    ['unsupported', 'none', 'none', 'Limited'],
    ['Only the editor is installed'],
  ],
  [
    'Cursor, no adapter',
    { runtimeId: 'cursor', capabilities: [], instances: [] },
    ['unsupported', 'none', 'none', 'Limited'],
    ['Monitoring not available yet', 'Push not available yet'],
  ],
  // Kimi: Ready for runs of ours, limited for its Web UI and terminals.
  [
    'Kimi',
    { runtimeId: 'kimi', capabilities: OWNED, instances: [] },
    ['ready', 'connectorOwnedOnly', 'requiresResumeProcess', 'Ready'],
    [
      'Monitoring of connector-owned sessions only',
      'Ready for resume push',
      'Limited for Web UI and terminal sessions',
    ],
  ],
  [
    'Kimi, signed out',
    { runtimeId: 'kimi', capabilities: OWNED, instances: [], auth: 'missing' },
    ['unconfigured', 'connectorOwnedOnly', 'unavailable', 'Needs setup'],
    ['Monitoring of connector-owned sessions only', 'Push not enabled', 'Sign-in needed'],
  ],
  // Copilot: Ready for jobs of ours after sign-in, limited for its remote sessions.
  [
    'Copilot, signed in',
    { runtimeId: 'copilot', capabilities: PROCESS, instances: [files], auth: 'ok' },
    ['ready', 'available', 'requiresResumeProcess', 'Ready'],
    ['Session list only', 'Ready for resume push', 'Limited for remote sessions'],
  ],
  [
    'Copilot, sign-in unknown',
    { runtimeId: 'copilot', capabilities: PROCESS, instances: [files], auth: 'unknown' },
    ['degraded', 'available', 'requiresResumeProcess', 'Limited'],
    ['Session list only', 'Resume push after sign-in', 'Sign-in not checked'],
  ],
  // Antigravity: Ready for jobs of ours, limited for terminals.
  [
    'Antigravity',
    { runtimeId: 'antigravity', capabilities: ['connectorOwnedOnly'], instances: [] },
    ['ready', 'connectorOwnedOnly', 'connectorOwnedOnly', 'Ready'],
    [
      'Monitoring of connector-owned sessions only',
      'Ready for connector-owned sessions',
      'Limited for sessions open in a terminal',
    ],
  ],
  [
    'Antigravity, only the editor',
    { runtimeId: 'antigravity', capabilities: ['connectorOwnedOnly'], instances: [], installation: EDITOR },
    ['unsupported', 'none', 'none', 'Limited'],
    ['Only the editor is installed'],
  ],
  // pi: a process runtime; its extension takes messages into open sessions.
  [
    'pi, no session runs',
    { runtimeId: 'pi', capabilities: PROCESS, instances: [instance('available', PROCESS)] },
    ['ready', 'available', 'requiresResumeProcess', 'Ready'],
    ['Ready for monitoring', 'Ready for resume push'],
  ],
  [
    'pi, extension loaded',
    { runtimeId: 'pi', capabilities: PROCESS, instances: [server] },
    ['ready', 'watching', 'available', 'Ready'],
    ['Ready for monitoring', 'Ready for push'],
  ],
  // All of them.
  [
    'installing',
    { runtimeId: 'kimi', capabilities: OWNED, instances: [], installation: MISSING, installer: 'installing' },
    ['unconfigured', 'none', 'none', 'Not installed'],
    [],
  ],
  [
    'missing, but its sessions are there',
    { runtimeId: 'claude-code', capabilities: PROCESS, instances: [files], installation: MISSING },
    ['unconfigured', 'available', 'none', 'Not installed'],
    ['Session list only'],
  ],
  [
    'a version probe that failed',
    { runtimeId: 'codex', capabilities: PROCESS, instances: [files], installation: BROKEN },
    ['unconfigured', 'available', 'none', 'Error'],
    ['Session list only'],
  ],
  [
    'V3: too slow is installed',
    { runtimeId: 'pi', capabilities: PROCESS, instances: [files], installation: SLOW },
    ['ready', 'available', 'requiresResumeProcess', 'Ready'],
    ['Session list only', 'Ready for resume push', 'Version unknown (slow)'],
  ],
  [
    'being configured',
    { runtimeId: 'hermes', capabilities: ['sessionList'], instances: [files], buddy: 'configuring' },
    ['configuring', 'available', 'none', 'Needs setup'],
    ['Session list only', 'Push not available yet'],
  ],
];

describe('readinessOf: the Runtime Coverage Matrix', () => {
  test.each(MATRIX)('%s', (_given, input, [integration, monitor, push, readiness], scopes) => {
    const result = readinessOf({ installation: INSTALLED, capabilities: [], instances: [], ...input });
    expect([result.integrationState, result.monitorState, result.pushState, result.readiness]).toEqual([
      integration,
      monitor,
      push,
      readiness,
    ]);
    expect(result.scopes).toEqual(scopes);
  });

  test.each([...CATALOG, ...BRIDGES].map(({ id }) => id))(
    '%s missing is not installed, and nothing else',
    (runtimeId) => {
      expect(readinessOf({ runtimeId, installation: MISSING, capabilities: PROCESS, instances: [] })).toEqual(
        {
          installState: 'missing',
          integrationState: 'unconfigured',
          monitorState: 'none',
          pushState: 'none',
          readiness: 'Not installed',
          scopes: [],
          detail: null,
        },
      );
    },
  );

  test('an upgrade is a state of what is installed, never of what is missing or broken', () => {
    const state = (installation: ReadinessInput['installation']) =>
      readinessOf({
        runtimeId: 'pi',
        installation,
        installer: 'upgradeAvailable',
        capabilities: PROCESS,
        instances: [],
      });
    expect(state(INSTALLED)).toMatchObject({ installState: 'upgradeAvailable', readiness: 'Ready' });
    expect(state(MISSING).installState).toBe('missing');
    expect(state(BROKEN).installState).toBe('installError');
  });

  test('the detail is the scan’s error, else the first instance’s', () => {
    const detail = (installation: ReadinessInput['installation']) =>
      readinessOf({
        runtimeId: 'openclaw',
        installation,
        capabilities: SERVER,
        instances: [instance('error', [], 'wrong token')],
      }).detail;
    expect(detail(BROKEN)).toBe('codex ended with code 1');
    expect(detail(INSTALLED)).toBe('wrong token');
  });
});

describe('readinessOf: what always holds', () => {
  const words = fc.subarray([...SERVER, 'processWatch', 'attachments', 'connectorOwnedOnly']);
  const input: fc.Arbitrary<ReadinessInput> = fc.record(
    {
      runtimeId: fc.constantFrom(...[...CATALOG, ...BRIDGES].map(({ id }) => id), 'unheard-of'),
      installation: fc.constantFrom(INSTALLED, MISSING, EDITOR, SLOW, BROKEN),
      capabilities: words,
      instances: fc.array(
        fc.record({
          status: fc.constantFrom('running', 'available', 'stopped', 'missing', 'error'),
          capabilities: words,
          error: fc.constantFrom(null, 'down'),
        }),
        { maxLength: 3 },
      ),
      installer: fc.constantFrom('installing', 'upgradeAvailable'),
      auth: fc.constantFrom('ok', 'missing', 'unknown'),
      buddy: fc.constantFrom('configured', 'configuring', 'unconfigured'),
    },
    { requiredKeys: ['runtimeId', 'installation', 'capabilities', 'instances'] },
  );

  test('a binary alone is never ready, a missing one never anything else, and no scope is said twice', () => {
    fc.assert(
      fc.property(input, (given) => {
        const result = readinessOf(given);
        expect(result).toEqual(readinessOf(given));
        if (result.readiness === 'Ready') {
          expect(['installed', 'upgradeAvailable']).toContain(result.installState);
          expect(['ready', 'degraded']).toContain(result.integrationState);
          expect(
            given.capabilities.length > 0 || given.instances.length > 0 || given.buddy === 'configured',
          ).toBe(true);
        }
        if (given.installation === MISSING) expect(result.readiness).toBe('Not installed');
        if (given.auth === 'missing') expect(result.readiness).not.toBe('Ready');
        if (given.installation === EDITOR)
          expect(result.scopes.join()).not.toContain('Ready for resume push');
        expect(new Set(result.scopes).size).toBe(result.scopes.length);
      }),
      { numRuns: 2_000 },
    );
  });

  test('no forbidden words (R-44)', () => {
    fc.assert(
      fc.property(input, (given) => {
        expect(JSON.stringify(readinessOf(given))).not.toMatch(/coding agent|agent runtime|wild/i);
      }),
    );
  });
});
