import type { Environment } from './types.ts';

/**
 * Variables by which a program would take itself for a part of the session that started us (V2: `claude
 * --version` hangs inside Claude Code), or by which another program's run time would change its behaviour.
 */
const SCRUBBED: readonly RegExp[] = [
  // Claude Code's marks of a session and of its children.
  /^CLAUDECODE$/,
  /^CLAUDE_(PID|PROJECT_DIR|ENV_FILE|PLUGIN_ROOT)$/,
  /^CLAUDE_CODE_/,
  // Codex's marks (seen in the environment of 0.171's tools).
  /^CODEX_(THREAD_ID|SESSION_ID|TOOL_CALL_ID|VERSION|SANDBOX.*|CI|PERMISSION_PROFILE|PLUGIN_.*|SNAPSHOT_.*|NETWORK_.*)$/,
  // pi, OpenCode, Cursor, Gemini and what several set for "an agent started this".
  /^PI_SESSION_(ID|FILE)$/,
  /^OPENCODE(_PID|_SESSION_ID)?$/,
  /^CURSOR_(AGENT|TRACE_ID)$/,
  /^(GEMINI_CLI|AI_AGENT|AGENT)$/,
  // Run times: options, debuggers, and Electron's and Bun's "be another program".
  /^NODE_(OPTIONS|CHANNEL_FD|CHANNEL_SERIALIZATION_MODE|V8_COVERAGE|UNIQUE_ID)$/,
  /^BUN_(?!INSTALL$)/,
  /^ELECTRON_/,
  /^VSCODE_(INSPECTOR_OPTIONS|IPC_HOOK|NODE_OPTIONS|PID|CWD|ESM_ENTRYPOINT|CRASH_REPORTER.*|HANDLES_.*|L10N.*)$/,
  // npm's marks of a running script; its settings (`npm_config_*`) stay.
  /^npm_(lifecycle|package|command|execpath|node_execpath|old)/,
  /^INIT_CWD$/,
  // Our own secrets are nobody else's.
  /^SHADOWOB_.*(TOKEN|KEY|SECRET)$/,
];

/** Settings of the user among the names above: how Claude Code signs in and reaches its model. */
const KEPT =
  /^CLAUDE_CODE_(OAUTH_|USE_|SKIP_\w+_AUTH$|API_KEY|CLIENT_|GIT_BASH_PATH$|TMPDIR$|MAX_|DISABLE_|ENABLE_)/;

/**
 * The environment for a child that must not take itself for a part of the session around us: session marks and
 * run-time options are removed; HOME, PATH, locale, proxy and certificate variables, and every runtime's own
 * settings, stay. Variables without a value are dropped.
 */
export function scrubbedEnv(env: Environment): Record<string, string> {
  const kept: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined) continue;
    if (!KEPT.test(name) && SCRUBBED.some((pattern) => pattern.test(name))) continue;
    kept[name] = value;
  }
  return kept;
}
