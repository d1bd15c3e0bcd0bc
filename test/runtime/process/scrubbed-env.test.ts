import { describe, expect, test } from 'bun:test';
import { scrubbedEnv } from '../../../src/runtime/process/scrubbed-env.ts';

describe('scrubbedEnv (V2)', () => {
  const removed = [
    'CLAUDECODE',
    'CLAUDE_PID',
    'CLAUDE_PROJECT_DIR',
    'CLAUDE_CODE_ENTRYPOINT',
    'CLAUDE_CODE_SESSION_ID',
    'CLAUDE_CODE_CHILD_SESSION',
    'CLAUDE_CODE_SSE_PORT',
    'CODEX_THREAD_ID',
    'CODEX_SESSION_ID',
    'CODEX_TOOL_CALL_ID',
    'CODEX_SANDBOX',
    'CODEX_SANDBOX_NETWORK_DISABLED',
    'PI_SESSION_ID',
    'PI_SESSION_FILE',
    'OPENCODE',
    'CURSOR_AGENT',
    'NODE_OPTIONS',
    'NODE_CHANNEL_FD',
    'BUN_BE_BUN',
    'BUN_OPTIONS',
    'BUN_INSPECT',
    'ELECTRON_RUN_AS_NODE',
    'ELECTRON_NO_ATTACH_CONSOLE',
    'VSCODE_INSPECTOR_OPTIONS',
    'npm_lifecycle_event',
    'npm_package_name',
    'INIT_CWD',
    'SHADOWOB_TOKEN',
    'SHADOWOB_API_KEY',
  ];
  const kept = [
    'HOME',
    'PATH',
    'Path',
    'SHELL',
    'LANG',
    'LC_ALL',
    'TZ',
    'TMPDIR',
    'XDG_DATA_HOME',
    'HTTPS_PROXY',
    'no_proxy',
    'NODE_EXTRA_CA_CERTS',
    'SSL_CERT_FILE',
    'BUN_INSTALL',
    'NVM_DIR',
    'NPM_CONFIG_PREFIX',
    'npm_config_prefix',
    'CODEX_HOME',
    'CODEX_API_KEY',
    'CODEX_CA_CERTIFICATE',
    'CLAUDE_CONFIG_DIR',
    'CLAUDE_CODE_OAUTH_TOKEN',
    'CLAUDE_CODE_USE_BEDROCK',
    'CLAUDE_CODE_SKIP_BEDROCK_AUTH',
    'ANTHROPIC_API_KEY',
    'OPENCODE_CONFIG',
    'OPENCODE_SERVER_PASSWORD',
    'PI_CODING_AGENT_DIR',
    'SHADOWOB_CONNECTOR_HOME',
    'SystemRoot',
    'PATHEXT',
    'APPDATA',
  ];
  test.each(removed)('%s goes', (name) => {
    expect(scrubbedEnv({ [name]: 'x' })).toEqual({});
  });
  test.each(kept)('%s stays', (name) => {
    expect(scrubbedEnv({ [name]: 'x' })).toEqual({ [name]: 'x' });
  });
  test('what has no value is dropped, and the given object is left alone', () => {
    const env = { A: undefined, B: '', CLAUDECODE: '1' };
    expect(scrubbedEnv(env)).toEqual({ B: '' });
    expect(env.CLAUDECODE).toBe('1');
  });
});
