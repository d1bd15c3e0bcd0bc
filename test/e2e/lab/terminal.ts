/**
 * A terminal for the programs that want one: tmux with a socket of its own and a fixed size. Only tests type and read
 * screens; the product never does.
 */
import { type UntilOptions, until } from './until.ts';

export interface TerminalOptions {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Path of the socket; short, since sockets allow about a hundred bytes. */
  readonly socket: string;
  readonly columns?: number;
  readonly rows?: number;
}

export interface Terminal {
  /** The process that was started in it. */
  readonly pid: number;
  /** What is on the screen now, without colours. */
  screen(): Promise<string>;
  /** The same with its escape sequences, for pictures. */
  colours(): Promise<string>;
  /** Waits until the screen shows a text, and returns the screen. */
  shows(what: string | RegExp, options?: UntilOptions): Promise<string>;
  /** Types text as it is. */
  type(words: string): Promise<void>;
  /** Presses keys by tmux's names: `Enter`, `Escape`, `C-c`. */
  press(...keys: string[]): Promise<void>;
  /**
   * Presses a key that answers a dialog, until the dialog's text has gone: programs ignore keys that come so soon that
   * no person can have read the question.
   */
  answer(key: string, dialog: string | RegExp): Promise<void>;
  /** Presses a key until the screen shows what it brings: a program that still starts swallows keys. */
  pressFor(key: string, what: string | RegExp): Promise<void>;
  /** Waits for the end of the program, and gives its exit code. */
  ended(): Promise<number>;
  resize(columns: number, rows: number): Promise<void>;
  /** Ends the tmux server, and with it whatever still runs in it. */
  close(): Promise<void>;
}

/** Why terminals can't be had here; `undefined` when they can. */
export function noTerminalReason(): string | undefined {
  return Bun.which('tmux') ? undefined : 'tmux is missing';
}

export async function openTerminal(options: TerminalOptions): Promise<Terminal> {
  const tmux = (...args: string[]) => runTmux(options, args);
  const size = ['-x', String(options.columns ?? 120), '-y', String(options.rows ?? 40)];
  await tmux(
    ...['-f', '/dev/null', 'start-server', ';', 'set', '-g', 'remain-on-exit', 'on', ';'],
    ...['set', '-g', 'status', 'off', ';', 'set', '-g', 'default-terminal', 'tmux-256color', ';'],
    ...['set', '-g', 'escape-time', '0', ';'],
    ...['new-session', '-d', ...size, '-c', options.cwd, '--', ...options.command],
  );
  // Before there is a window, tmux 3.3a dies of this setting.
  await tmux('set', '-g', 'window-size', 'manual');
  const screen = () => tmux('capture-pane', '-p');
  return {
    pid: Number(await tmux('display-message', '-p', '#{pane_pid}')),
    screen,
    colours: () => tmux('capture-pane', '-p', '-e'),
    shows: (what, wait) =>
      until(
        `"${what}" on the screen`,
        async () => {
          const seen = await screen();
          return matches(seen, what) && seen;
        },
        { explain: screen, ...wait },
      ),
    async type(words) {
      await tmux('send-keys', '-l', '--', words);
    },
    async press(...keys) {
      await tmux('send-keys', ...keys);
    },
    async answer(key, dialog) {
      const gone = async () => !matches(await screen(), dialog);
      const pressed = async () => {
        await tmux('send-keys', key);
        return until('the end of the dialog', gone, { timeoutMs: 1_000 }).catch(() => false);
      };
      await until(`"${dialog}" to be answered by ${key}`, pressed, { explain: screen });
    },
    async pressFor(key, what) {
      const shown = async () => matches(await screen(), what);
      const pressed = async () => {
        await tmux('send-keys', key);
        return until(`${what}`, shown, { timeoutMs: 3_000 }).catch(() => false);
      };
      await until(`"${what}" by ${key}`, pressed, { explain: screen });
    },
    async ended() {
      // The terminal closes before tmux has the code, or the signal, that the program ended with. tmux 3.3a sometimes
      // misses the word of that altogether and leaves it a zombie: it is told again.
      const status = async () => {
        const format = '#{pane_dead} #{pid} #{pane_dead_status} #{pane_dead_signal}';
        const [dead, server, code, signal] = (await tmux('display-message', '-p', format))
          .trimEnd()
          .split(' ');
        if (dead !== '1') return undefined;
        if (code) return { code: Number(code) };
        if (signal) return { code: 128 + Number(signal) };
        process.kill(Number(server), 'SIGCHLD');
        return undefined;
      };
      return (await until('the end of the program', status, { explain: screen })).code;
    },
    async resize(columns, rows) {
      await tmux('resize-window', '-x', String(columns), '-y', String(rows));
    },
    async close() {
      // No server is no failure: it leaves by itself when its last window has gone.
      await tmux('kill-server').catch(() => '');
    },
  };
}

function matches(seen: string, what: string | RegExp): boolean {
  return typeof what === 'string' ? seen.includes(what) : what.test(seen);
}

async function runTmux(options: TerminalOptions, args: readonly string[]): Promise<string> {
  const child = Bun.spawn(['tmux', '-u', '-S', options.socket, ...args], {
    cwd: options.cwd,
    env: options.env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  });
  const [out, err, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  if (code !== 0) throw new Error(`tmux ${args.slice(0, 2).join(' ')}: ${err.trim()}`);
  return out.replace(/\n$/, '');
}

/** Types a prompt and sends it. */
export async function ask(terminal: Terminal, prompt: string): Promise<void> {
  await terminal.type(prompt);
  await terminal.shows(prompt);
  await terminal.press('Enter');
}
