/**
 * Which command lines open a terminal session that can be put on a server of the wrapper's (S-760). Pure.
 */

/** Subcommands of 0.171, and of older versions, that open none, or one on the shared daemon (`agents`). */
const OTHER_COMMANDS: ReadonlySet<string> = new Set([
  ...[
    'agents',
    'app-server',
    'apply',
    'a',
    'archive',
    'cloud',
    'cloud-tasks',
    'completion',
    'debug',
    'delete',
  ],
  ...['doctor', 'e', 'exec', 'exec-server', 'execpolicy', 'features', 'help', 'login', 'logout', 'mcp'],
  ...['mcp-server', 'migrate-nfs-db', 'migrate-rollouts', 'plugin', 'proto', 'queue', 'remote-control'],
  ...['responses-api-proxy', 'review', 'sandbox', 'stdio-to-uds', 'unarchive', 'update'],
]);

/** `--no-daemon` asks for a session in the terminal's own process; a server would be the opposite. */
const OTHER_OPTIONS: ReadonlySet<string> = new Set(['--no-daemon', '--help', '-h', '--version', '-V']);

/** Why these arguments of `codex` run as they are; `undefined` for those that are wrapped. */
export function passReason(args: readonly string[]): string | undefined {
  const at = args.indexOf('--');
  const words = at < 0 ? args : args.slice(0, at);
  const option = words.find(
    (word) => OTHER_OPTIONS.has(word) || word === '--remote' || word.startsWith('--remote='),
  );
  if (option !== undefined) return `${option} is given`;
  const command = words.find((word) => OTHER_COMMANDS.has(word));
  return command === undefined ? undefined : `codex ${command} opens no terminal session`;
}

/** The terminal program on the wrapper's server. */
export function onServer(program: string, socket: string, args: readonly string[]): readonly string[] {
  return [program, '--remote', `unix://${socket}`, ...args];
}
