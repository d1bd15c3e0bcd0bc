/** The vendors' own install commands (`targets.md` §1). Each stays under the 500 characters of the heartbeat. */

interface InstallCommands {
  readonly darwin: readonly string[];
  readonly linux: readonly string[];
  readonly win32: readonly string[];
  readonly other: readonly string[];
}

function powershell(command: string): string {
  return `powershell.exe -NoProfile -ExecutionPolicy Bypass -Command "${command}"`;
}

function npm(name: string): string {
  return `npm install -g ${name}`;
}

function everywhere(...commands: readonly string[]): InstallCommands {
  return { darwin: commands, linux: commands, win32: commands, other: commands };
}

const OPENCLAW = 'curl -fsSL https://openclaw.ai/install.sh | bash -s -- --no-onboard';
const HERMES =
  'curl -fsSL https://hermes-agent.nousresearch.com/install.sh | bash -s -- --skip-setup --non-interactive --skip-browser';
const CLAUDE = 'curl -fsSL https://claude.ai/install.sh | bash';
const OPENCODE = 'curl -fsSL https://opencode.ai/install | bash';
const CURSOR = 'curl https://cursor.com/install -fsS | bash';
const KIMI = 'curl -fsSL https://code.kimi.com/kimi-code/install.sh | bash';
const COPILOT = ['brew install copilot-cli', 'curl -fsSL https://gh.io/copilot-install | bash'];
const ANTIGRAVITY = 'curl -fsSL https://antigravity.google/cli/install.sh | bash';

/** Hermes' installer unpacks an `.tar.xz` and doesn't bring the program for it. */
const XZ_FIRST = [
  'command -v xz >/dev/null || { s=; [ "$(id -u)" = 0 ] || s=sudo; ',
  '$s apt-get install -y xz-utils || $s apk add xz || $s dnf install -y xz || $s yum install -y xz ',
  '|| $s pacman -S --noconfirm xz; }',
].join('');

const COMMANDS: Readonly<Record<string, InstallCommands>> = {
  openclaw: {
    darwin: [OPENCLAW],
    linux: [OPENCLAW],
    win32: [powershell('& ([scriptblock]::Create((irm https://openclaw.ai/install.ps1))) -NoOnboard')],
    other: [OPENCLAW],
  },
  hermes: {
    darwin: [HERMES],
    linux: [`${XZ_FIRST}; ${HERMES}`],
    win32: [powershell('irm https://hermes-agent.nousresearch.com/install.ps1 | iex')],
    other: ['pipx install hermes-agent'],
  },
  'claude-code': {
    darwin: [CLAUDE],
    linux: [CLAUDE],
    win32: [powershell('irm https://claude.ai/install.ps1 | iex')],
    other: [npm('@anthropic-ai/claude-code')],
  },
  codex: everywhere(npm('@openai/codex')),
  opencode: {
    darwin: [OPENCODE],
    linux: [OPENCODE],
    win32: [npm('opencode-ai')],
    other: [npm('opencode-ai')],
  },
  cursor: {
    darwin: [CURSOR],
    linux: [CURSOR],
    // Cursor has no CLI for Windows itself; it lives in WSL, which is a computer of its own to us (W8).
    win32: [powershell(`wsl.exe bash -lc '${CURSOR}'`)],
    other: [CURSOR],
  },
  kimi: {
    darwin: [KIMI],
    linux: [KIMI],
    win32: [powershell('irm https://code.kimi.com/kimi-code/install.ps1 | iex')],
    other: [],
  },
  copilot: {
    darwin: COPILOT,
    linux: COPILOT,
    win32: ['winget install GitHub.Copilot', npm('@github/copilot')],
    other: [],
  },
  antigravity: {
    darwin: [ANTIGRAVITY],
    linux: [ANTIGRAVITY],
    win32: [powershell('irm https://antigravity.google/cli/install.ps1 | iex')],
    other: [],
  },
  pi: everywhere(npm('@earendil-works/pi-coding-agent')),
};

/** The commands for a runtime, in the order in which they are tried until one exits 0; empty when there is none. */
export function installCommands(runtimeId: string, platform: NodeJS.Platform): readonly string[] {
  const commands = COMMANDS[runtimeId];
  if (commands === undefined) return [];
  if (platform === 'darwin' || platform === 'linux' || platform === 'win32') return commands[platform];
  return commands.other;
}
