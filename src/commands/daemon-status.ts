import { readConfig } from '../runtime/config/read.ts';
import { ConnectorError } from '../runtime/errors.ts';
import type { Answer } from './command.ts';
import { logPathIn } from './daemon-log-path.ts';
import { clientOf, likelyHolder, managerOf, serviceWords, specOf } from './daemon-reach.ts';
import { age } from './output/age.ts';
import { paint, type Style } from './output/style.ts';
import type { World } from './world.ts';

interface ServiceLine {
  readonly name: string;
  readonly healthy: boolean;
  readonly summary: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** How the daemon runs (S-310, S-341). Without one it fails, and says which of "not there" and "silent" it is. */
export async function daemonStatus(world: World, socketPath: string, home: string): Promise<Answer> {
  const manager = managerOf(world, home);
  const spec = specOf(world, socketPath, home);
  const settings = readConfig(home);
  const service = manager?.installed() ? serviceWords(manager, spec) : 'none: started by hand, not at login';
  const holder = likelyHolder(socketPath);
  const base = { socket: socketPath, home, log: logPathIn(home), service, config: settings.path };
  const problems = settings.problem === undefined ? [] : [settings.problem];
  // Where a manager holds the socket, a ping would start what was only asked about (S-340).
  if (!holder && manager?.installed()) {
    return {
      kind: 'document',
      data: { running: false, ...base },
      text: () => `not running; the first client starts it (${service})`,
      warnings: problems,
    };
  }
  const reply = await clientOf(world, socketPath).request('daemon', 'status');
  if (reply.kind !== 'ok') {
    // Whoever refuses is there: a daemon of another build, or none of ours.
    const why = reply.kind === 'rejected' ? reply.error : reply.detail;
    const silent = reply.kind === 'rejected' || reply.reason !== 'none';
    const who = holder ? ` (pid ${holder.pid})` : '';
    return {
      kind: 'document',
      data: { running: silent, ...base },
      text: () => '',
      warnings: problems,
      failure: silent
        ? new ConnectorError(
            'daemon',
            `the daemon${who} does not answer: ${why}`,
            reply.kind === 'rejected'
              ? 'It may be of another build: shadowob-connector daemon restart'
              : 'It may be busy; try again.',
          )
        : new ConnectorError('daemon', 'no daemon is running', 'shadowob-connector daemon start'),
    };
  }
  const about = fieldsOf(reply.payload);
  const services = linesOf(about['services']);
  const version = String(about['version']);
  return {
    kind: 'document',
    data: { running: true, ...base, ...about },
    text: (style) => statusText(style, about, services, base, world),
    warnings: [
      ...problems,
      ...(version === world.version
        ? []
        : [
            `The daemon is version ${version}, this program ${world.version}: shadowob-connector daemon restart`,
          ]),
    ],
  };
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function linesOf(value: unknown): readonly ServiceLine[] {
  if (!Array.isArray(value)) return [];
  return value.map((one): ServiceLine => {
    const fields = fieldsOf(one);
    return {
      name: String(fields['name']),
      healthy: fields['healthy'] === true,
      summary: String(fields['summary']),
      detail: fieldsOf(fields['detail']),
    };
  });
}

function statusText(
  style: Style,
  about: Readonly<Record<string, unknown>>,
  services: readonly ServiceLine[],
  base: { readonly socket: string; readonly log: string; readonly service: string; readonly config: string },
  world: World,
): string {
  const connector = services.find((one) => one.name === 'connector')?.detail ?? {};
  const memory = Number(fieldsOf(connector['memory'])['rssBytes'] ?? 0);
  const lines: [string, string][] = [
    ['Daemon', `running, version ${String(about['version'])}, pid ${String(about['pid'])}`],
    [
      'Up',
      `${age(Date.parse(String(about['started_at'])), world.now())}, started by ${String(about['started_by'])}`,
    ],
    ['Service', base.service],
    ['Socket', base.socket],
    ['Log', base.log],
    ['Settings', settingsWords(about['config'], base.config)],
    ['Telling you', notifyWords(about['notifications'])],
    ['Memory', `${Math.round(memory / 1e6)} MB`],
    ...services.map((one): [string, string] => [
      one.name,
      one.healthy ? one.summary : `not well: ${one.summary}`,
    ]),
  ];
  const table = lines.map(([name, text]) => `${paint(style, 'dim', name.padEnd(12))}${text}`);
  return [
    ...table,
    '',
    paint(style, 'bold', 'Watching'),
    ...pairs(style, connector['feeds'], 'nothing yet'),
    '',
    paint(style, 'bold', 'Counted since the start'),
    ...pairs(style, connector['counters'], 'nothing yet'),
    ...pairs(style, { 'records skipped now': connector['skipped'] ?? 0 }, ''),
  ].join('\n');
}

/** Which file the daemon follows, and what is wrong with it. */
function settingsWords(value: unknown, path: string): string {
  const { path: followed = path, problem } = fieldsOf(value);
  return typeof problem === 'string' ? problem : String(followed);
}

/** Whether the owner is told of anything, how, and what came of it. */
function notifyWords(value: unknown): string {
  const { enabled, sinks, delivered, failed, lastFailure } = fieldsOf(value);
  if (enabled !== true) return 'off';
  const ways = Array.isArray(sinks) && sinks.length > 0 ? sinks.map(String).join(', ') : 'no way is set';
  const trouble = typeof lastFailure === 'string' ? `; last failure: ${lastFailure}` : '';
  return `on by ${ways}; ${Number(delivered ?? 0)} delivered, ${Number(failed ?? 0)} failed${trouble}`;
}

function pairs(style: Style, value: unknown, none: string): readonly string[] {
  const entries = Object.entries(fieldsOf(value));
  if (entries.length === 0) return [`  ${paint(style, 'dim', none)}`];
  const width = Math.max(...entries.map(([name]) => name.length));
  return entries.map(([name, text]) => `  ${name.padEnd(width)}  ${String(text)}`);
}
