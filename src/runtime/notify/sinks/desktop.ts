import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { NOTIFY } from '../../limits.ts';
import { scrubbedEnv } from '../../process/scrubbed-env.ts';
import type { CommandRunner, Environment, Platform, RunResult } from '../../process/types.ts';
import { oneLine } from '../../session/text.ts';
import { type Banner, bannerOf, type Notice } from '../notice.ts';
import { DELIVERED, failed, type Sink } from './sink.ts';

export interface DesktopOptions {
  readonly platform: Platform;
  readonly env: Environment;
  readonly details: boolean;
  readonly run: CommandRunner;
  readonly exists?: (path: string) => boolean;
}

/** One way to show a banner: what is run, and with what beside the environment. */
export interface DesktopCall {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The desktop's own banners. What is told is handed over as an argument or a variable and never becomes a part of a
 * script. The ways of a system are tried in their order until one works.
 */
export function desktopSink(options: DesktopOptions): Sink {
  const exists = options.exists ?? existsSync;
  return {
    name: 'desktop',
    words: WORDS[options.platform] ?? 'notify-send',
    async send(notice, signal) {
      const calls = desktopCalls(notice, bannerOf(notice, options.details), options.platform);
      const env = { ...scrubbedEnv(options.env), ...sessionBus(options.env, options.platform, exists) };
      const reasons: string[] = [];
      for (const call of calls) {
        const result = await options.run({
          argv: call.argv,
          env: { ...env, ...call.env },
          timeoutMs: NOTIFY.desktopMs,
          signal,
          keepBytes: NOTIFY.commandKeepBytes,
        });
        if (result.kind === 'exited' && result.code === 0) return DELIVERED;
        reasons.push(`${call.argv[0]}: ${whyNot(result)}`);
      }
      return failed(reasons.join('; '));
    },
  };
}

const WORDS: Partial<Record<Platform, string>> = {
  darwin: 'Notification Centre (osascript)',
  win32: 'Windows notifications (PowerShell)',
};

function whyNot(result: RunResult): string {
  if (result.kind === 'failedToStart')
    return result.reason === 'notFound' ? 'is not installed' : result.reason;
  if (result.kind !== 'exited') return 'did not end';
  return oneLine(result.stderr).slice(0, 200) || `left with code ${result.code}`;
}

/** The calls for one banner, by system; the first that works is the last that is made. */
export function desktopCalls(notice: Notice, banner: Banner, platform: Platform): readonly DesktopCall[] {
  const title = oneLine(banner.title);
  const lines = banner.text.split('\n').map(oneLine);
  if (platform === 'darwin') return [macCall(title, lines.join('\n'))];
  if (platform === 'win32') return [windowsCall(title, lines.join('\n'))];
  return linuxCalls(notice, title, lines.join('\n'));
}

/** The script is constant; the texts are its arguments. */
const MAC_SCRIPT = [
  'on run argv',
  'display notification (item 2 of argv) with title (item 1 of argv)',
  'end run',
] as const;

function macCall(title: string, text: string): DesktopCall {
  const script = MAC_SCRIPT.flatMap((line) => ['-e', line]);
  return { argv: ['/usr/bin/osascript', ...script, '--', title, text], env: {} };
}

/** `notify-send`, else the same call by `gdbus`, which GNOME's base brings. The body is markup, the title is not. */
function linuxCalls(notice: Notice, title: string, text: string): readonly DesktopCall[] {
  const body = escapeMarkup(text);
  const urgency = notice.kind === 'approval' || notice.kind === 'input' ? 'critical' : 'normal';
  const hints = `{'urgency': <byte ${urgency === 'critical' ? 2 : 1}>}`;
  const gdbus = ['gdbus', 'call', '--session', '--dest', 'org.freedesktop.Notifications'];
  const method = [
    '--object-path',
    '/org/freedesktop/Notifications',
    '--method',
    'org.freedesktop.Notifications.Notify',
  ];
  const fields = [variant(APP), '0', variant(''), variant(title), variant(body), '[]', hints, '-1'];
  return [
    { argv: ['notify-send', `--app-name=${APP}`, `--urgency=${urgency}`, '--', title, body], env: {} },
    { argv: [...gdbus, ...method, '--', ...fields], env: {} },
  ];
}

const APP = 'shadowob-connector';

/** Text as the notification daemons of Linux read it. */
export function escapeMarkup(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** A string in GVariant's text form; control characters are gone by now, but for our own line end. */
function variant(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`;
}

/**
 * The script is constant; the texts are variables of its process, and become text nodes of the toast. The program id
 * is PowerShell's own, since Windows shows toasts only of programs that the Start menu knows.
 */
const WINDOWS_SCRIPT = [
  "$ErrorActionPreference = 'Stop'",
  '[void][Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]',
  '$kind = [Windows.UI.Notifications.ToastTemplateType]::ToastText02',
  '$xml = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent($kind)',
  "$nodes = $xml.GetElementsByTagName('text')",
  '[void]$nodes.Item(0).AppendChild($xml.CreateTextNode($env:SHADOWOB_NOTICE_TITLE))',
  '[void]$nodes.Item(1).AppendChild($xml.CreateTextNode($env:SHADOWOB_NOTICE_TEXT))',
  "$id = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\\WindowsPowerShell\\v1.0\\powershell.exe'",
  '$toast = [Windows.UI.Notifications.ToastNotification]::new($xml)',
  '[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier($id).Show($toast)',
].join('; ');

function windowsCall(title: string, text: string): DesktopCall {
  // Windows PowerShell and not `pwsh`: only the former brings the Windows runtime's types along.
  const flags = ['-NoProfile', '-NonInteractive', '-WindowStyle', 'Hidden'];
  return {
    argv: ['powershell.exe', ...flags, '-Command', WINDOWS_SCRIPT],
    env: { SHADOWOB_NOTICE_TITLE: title, SHADOWOB_NOTICE_TEXT: text },
  };
}

/** A daemon that nobody's desktop started has no address of the session's bus, though the bus may be there. */
function sessionBus(
  env: Environment,
  platform: Platform,
  exists: (path: string) => boolean,
): Record<string, string> {
  const runtime = env['XDG_RUNTIME_DIR'];
  if (platform === 'darwin' || platform === 'win32' || env['DBUS_SESSION_BUS_ADDRESS'] || !runtime) return {};
  const bus = join(runtime, 'bus');
  return exists(bus) ? { DBUS_SESSION_BUS_ADDRESS: `unix:path=${bus}` } : {};
}
