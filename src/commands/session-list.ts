import { labelOf } from '../adapters/catalog.ts';
import { type Collected, toSnapshot } from './collect.ts';
import { type Answer, defineCommand, SESSION_FILTER_ARGS } from './command.ts';
import { lookAround } from './daemon-look.ts';
import { readFilter, type SessionFilter } from './filter.ts';
import { paint, type Style } from './output/style.ts';
import { tableOfSessions } from './table-of-sessions.ts';
import type { World } from './world.ts';

/** Sessions that a person sees without asking for more. */
export const DEFAULT_SHOWN = 30;

export const sessionList = defineCommand({
  name: 'session-list',
  summary: 'list the sessions of all runtimes, those that wait for you first',
  details:
    'Lists every session on this computer with its state and what the state rests on. A state with a question mark is only inferred from a file. Sub-agents are folded under their session; archived sessions are shown with --all.',
  args: SESSION_FILTER_ARGS,
  examples: [
    { command: 'session-list', says: 'the newest sessions of every runtime' },
    { command: 'session-list --state waiting', says: 'only those that wait for you' },
    {
      command: 'session-list --runtime codex --since 2h --json',
      says: 'Codex sessions of the last two hours, as JSON',
    },
    { command: 'session-list --dir . --all', says: 'everything that ever ran in or below this folder' },
  ],
  brief: true,
  async run(args, world): Promise<Answer> {
    const filter = readFilter(args, world.cwd, world.now());
    const look = await lookAround(world, filter, args.daemon !== false);
    return {
      kind: 'document',
      data: toSnapshot(look, look.adapters, filter, world.now()),
      text: (style) => listText(style, look, filter, world),
      warnings: problemLines(look),
    };
  },
});

/** What could not be read, a line each, for stderr. */
export function problemLines(look: Pick<Collected, 'problems'>): string[] {
  const lines = look.problems.map(
    (problem) =>
      `${problem.subject}: ${problem.reason}${problem.skipped > 0 ? ` (${problem.skipped} left out)` : ''}`,
  );
  const shown = lines.slice(0, MAX_PROBLEM_LINES);
  return lines.length > shown.length ? [...shown, `${lines.length - shown.length} more, see --json`] : shown;
}

const MAX_PROBLEM_LINES = 5;

function listText(style: Style, look: Collected, filter: SessionFilter, world: World): string {
  if (look.sessions.length === 0) return emptyText(look);
  const limit = filter.all ? look.sessions.length : (filter.limit ?? DEFAULT_SHOWN);
  const shown = look.sessions.slice(0, limit);
  const body = tableOfSessions(style, shown, look.monitor, { redact: filter.redact, world });
  const rest = look.sessions.length - shown.length;
  return rest > 0 ? `${body}\n${paint(style, 'dim', `${rest} more: --all, or --limit`)}` : body;
}

function emptyText(look: Collected): string {
  const total = look.monitor.registry.size;
  return total > 0
    ? `No session passes these filters (${total} known).`
    : `No sessions yet of ${look.adapters.map((adapter) => labelOf(adapter.id)).join(', ')}.`;
}
