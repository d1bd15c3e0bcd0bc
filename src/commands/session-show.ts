import { labelOf } from '../adapters/catalog.ts';
import { ConnectorError } from '../runtime/errors.ts';
import type { History, HistoryEntry } from '../runtime/feed.ts';
import { sessionRow } from '../runtime/session/row.ts';
import type { Session } from '../runtime/session/session.ts';
import { type Answer, DAEMON_ARG, defineCommand } from './command.ts';
import { lookAround } from './daemon-look.ts';
import { readFilter } from './filter.ts';
import { age } from './output/age.ts';
import { shortPath } from './output/session-table.ts';
import { stateWords } from './output/states.ts';
import { paint, type Style } from './output/style.ts';
import { resolveSession } from './resolve.ts';
import { adapterContext, type World } from './world.ts';

/** Entries of history shown unless asked otherwise. */
const DEFAULT_ENTRIES = 20;
const MAX_ENTRIES = 500;
/** Bytes of UTF-8 in all entries together. */
const DEFAULT_BYTES = 64 * 1024;

export const sessionShow = defineCommand({
  name: 'session-show',
  summary: 'show one session and the end of its history',
  details:
    'Shows what is known of one session and its newest history, oldest entry first, within limits. This is the only command that prints what was said in a session; it never leaves this computer.',
  args: {
    id: { type: 'positional', required: true, description: 'the session’s id, or its beginning' },
    limit: {
      type: 'string',
      description: `Entries of history (default ${DEFAULT_ENTRIES}, 0 for none)`,
      valueHint: 'n',
    },
    'opencode-url': { type: 'string', description: 'An OpenCode server to ask', valueHint: 'url' },
    ...DAEMON_ARG,
  },
  examples: [
    { command: 'session-show 5c67492c', says: 'the session and its last 20 entries' },
    { command: 'session-show ses_dd1e --limit 100 --json', says: 'more of it, as JSON' },
  ],
  brief: true,
  async run(args, world): Promise<Answer> {
    const entries = readEntries(args.limit);
    const filter = readFilter({ all: true, 'opencode-url': args['opencode-url'] }, world.cwd, world.now());
    const look = await lookAround(world, filter, args.daemon !== false);
    const { session } = await look.whole(resolveSession(look.monitor, args.id).ref);
    const adapter = look.adapters.find((one) => one.id === session.ref.runtimeId);
    if (!adapter?.history && entries > 0) {
      throw new ConnectorError(
        'unsupported',
        `${labelOf(session.ref.runtimeId)}: history can’t be read`,
        'Try --limit 0.',
      );
    }
    const bounds = { entries, bytes: DEFAULT_BYTES };
    const history =
      entries > 0 && adapter?.history
        ? await adapter.history(adapterContext(world), session.ref, bounds)
        : undefined;
    return {
      kind: 'document',
      data: {
        session: { ...sessionRow(session), file: session.facts.file ?? null },
        history: history ? { ...history, entries: history.entries.map(entryData) } : null,
      },
      text: (style) => showText(style, session, history, world),
    };
  },
});

function readEntries(text: string | undefined): number {
  if (text === undefined) return DEFAULT_ENTRIES;
  const count = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN;
  if (count <= MAX_ENTRIES) return count;
  throw new ConnectorError(
    'badValue',
    `--limit: "${text}" is no number from 0 to ${MAX_ENTRIES}`,
    'Try --limit 50.',
  );
}

function entryData(entry: HistoryEntry) {
  const { at, ...rest } = entry;
  return { ...(at === undefined ? {} : { at: new Date(at).toISOString() }), ...rest };
}

function showText(style: Style, session: Session, history: History | undefined, world: World): string {
  const { facts, ref } = session;
  const state = stateWords(session);
  const about: [string, string | undefined][] = [
    ['Runtime', labelOf(ref.runtimeId)],
    ['Session', ref.sessionId],
    ['State', paint(style, state.look, state.text)],
    ['Folder', shortPath(facts.workDir, world.home)],
    ['Model', facts.model],
    ['Started', facts.startedAt === undefined ? undefined : `${age(facts.startedAt, world.now())} ago`],
    [
      'Active',
      facts.lastActivityAt === undefined ? undefined : `${age(facts.lastActivityAt, world.now())} ago`,
    ],
    ['Context', contextWords(session)],
    ['Parent', facts.lineage?.parentId],
    ['Forked from', facts.lineage?.forkedFromId],
    [
      'Sub-agents',
      session.subAgents.length > 0 ? session.subAgents.map((child) => child.sessionId).join(', ') : undefined,
    ],
    ['Processes', facts.pids && facts.pids.length > 0 ? facts.pids.join(', ') : undefined],
    ['Server', facts.endpoint || undefined],
    ['Error', session.shown.error],
    ['Note', facts.note],
  ];
  const lines = about.flatMap(([name, value]) =>
    value === undefined ? [] : [`${paint(style, 'dim', name.padEnd(12))}${value}`],
  );
  return [
    paint(style, 'bold', facts.title ?? '(no title)'),
    ...lines,
    ...historyLines(style, history, world),
  ].join('\n');
}

function contextWords(session: Session): string | undefined {
  const usage = session.facts.contextUsage;
  if (usage?.usedTokens === undefined) return undefined;
  const of = usage.maxTokens === undefined ? '' : ` of ${usage.maxTokens}`;
  return `${usage.usedTokens}${of} tokens${usage.usedPercent === undefined ? '' : ` (${Math.round(usage.usedPercent)} %)`}`;
}

function historyLines(style: Style, history: History | undefined, world: World): string[] {
  if (!history) return [];
  const head = history.more ? ['', paint(style, 'dim', '(older entries left out: --limit)')] : [''];
  const body = history.entries.flatMap((entry) => [
    `${paint(style, entry.role === 'user' ? 'cyan' : 'dim', entry.role)}${entry.at === undefined ? '' : paint(style, 'dim', `  ${age(entry.at, world.now())} ago`)}`,
    `${entry.text}${entry.cut ? paint(style, 'dim', ' [cut]') : ''}`,
    '',
  ]);
  const skipped = history.skipped > 0 ? [`${history.skipped} records did not fit and were skipped.`] : [];
  return history.entries.length === 0
    ? [...head, '(no history)', ...skipped]
    : [...head, ...body, ...skipped];
}
