import { writeSync } from 'node:fs';
import { askBriefly } from '../../runtime/daemon/ask.ts';
import { endpointOf, socketPathIn } from '../../runtime/daemon/endpoint.ts';
import { STATUS_LINE } from '../../runtime/limits.ts';
import { connectorHome } from '../../runtime/store/home.ts';
import { readGlance } from './glance.ts';
import { STATUS_FORMATS, type StatusFormat, statusLine } from './status-formats.ts';

/**
 * `status-line`, the short way: a prompt or a bar runs it every few seconds, so it imports next to nothing, asks the
 * daemon once, and never looks at a single file of a runtime. Without a daemon it prints the fallback of its format.
 */

export interface StatusLineRequest {
  readonly format: StatusFormat;
  readonly titles: boolean;
  readonly socket: string | undefined;
}

/** Reads the few words it takes; undefined for anything else, which the command itself then explains. */
export function readStatusLine(argv: readonly string[]): StatusLineRequest | undefined {
  const state = { format: 'plain' as StatusFormat, titles: false, socket: undefined as string | undefined };
  const rest = [...argv];
  while (rest.length > 0) {
    const word = rest.shift() ?? '';
    if (word === '--titles') {
      state.titles = true;
      continue;
    }
    const [, name, inline] = /^--(format|socket)(?:=(.*))?$/s.exec(word) ?? [];
    const value = inline ?? rest.shift();
    if (name === undefined || !value) return undefined;
    if (name === 'socket') {
      state.socket = value;
      continue;
    }
    const format = STATUS_FORMATS.find((one) => one === value);
    if (!format) return undefined;
    state.format = format;
  }
  return state;
}

interface StatusLineWorld {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly self: readonly string[];
}

/** Asks the daemon and makes the line, without its line end. Never throws. */
export async function makeStatusLine(request: StatusLineRequest, world: StatusLineWorld): Promise<string> {
  const socketPath = request.socket ?? socketPathIn(connectorHome(world.env, world.home));
  const payload = request.titles ? { titles: true } : {};
  const line = `${JSON.stringify({ service: 'connector', op: 'glance', payload })}\n`;
  const reply = await askBriefly(endpointOf(socketPath, world.platform).path, line, STATUS_LINE.answerMs);
  return statusLine(reply === undefined ? undefined : readGlance(reply), request.format, world.self);
}

/** The whole command; `self` is what a menu calls back. False when its words need the long way. */
export async function runStatusLine(argv: readonly string[]): Promise<boolean> {
  const request = readStatusLine(argv);
  if (!request) return false;
  const { env, platform } = process;
  const named = platform === 'win32' ? env['USERPROFILE'] : env['HOME'];
  const home = named || (await import('node:os')).homedir();
  const { selfCommand } = await import('../../runtime/control/context.ts');
  const self = selfCommand(process.execPath, Bun.main);
  try {
    writeSync(1, `${await makeStatusLine(request, { env, home, platform, self })}\n`);
  } catch {
    // The bar that asked has gone; there is nobody to tell.
  }
  return true;
}
