import { labelOf } from '../adapters/catalog.ts';
import type { ScanProblem } from '../runtime/feed.ts';
import type { EvidenceLink } from '../runtime/session/evidence.ts';
import { publicState, socketState } from '../runtime/session/project.ts';
import { sessionRow } from '../runtime/session/row.ts';
import type { Session } from '../runtime/session/session.ts';
import type { SessionState } from '../runtime/session/state.ts';
import { type Answer, DAEMON_ARG, defineCommand } from './command.ts';
import { lookAround } from './daemon-look.ts';
import { readFilter } from './filter.ts';
import { age } from './output/age.ts';
import { shortPath } from './output/session-table.ts';
import { stateWords } from './output/states.ts';
import { paint, type Style } from './output/style.ts';
import { table } from './output/table.ts';
import { resolveSession } from './resolve.ts';
import type { World } from './world.ts';

export const sessionWhy = defineCommand({
  name: 'session-why',
  summary: 'say why a session is said to be in its state',
  details:
    'Prints the chain of evidence of one session: which feed said what and when, which of them decided, and what it overruled and by which rule. Skipped records are counted. The id may be shortened.',
  args: {
    id: { type: 'positional', required: true, description: 'the session’s id, or its beginning' },
    'opencode-url': { type: 'string', description: 'An OpenCode server to ask', valueHint: 'url' },
    ...DAEMON_ARG,
  },
  examples: [
    { command: 'session-why 5c67492c', says: 'the evidence for that session' },
    { command: 'session-why codex:01a22e21 --json', says: 'the same as JSON, for one runtime’s id' },
  ],
  brief: true,
  async run(args, world): Promise<Answer> {
    const filter = readFilter({ all: true, 'opencode-url': args['opencode-url'] }, world.cwd, world.now());
    const look = await lookAround(world, filter, args.daemon !== false);
    const { session, relatives } = await look.whole(resolveSession(look.monitor, args.id).ref);
    const problems = look.problems.filter((problem) => concerns(problem, session));
    return {
      kind: 'document',
      data: whyData(session, relatives, problems),
      text: (style) => whyText(style, session, relatives, problems, world),
    };
  },
});

/** The whole answer as data; the daemon's `why` gives the same. */
export function whyData(
  session: Session,
  relatives: readonly Session[],
  problems: readonly ScanProblem[],
): object {
  return {
    session: { ...sessionRow(session), file: session.facts.file ?? null },
    state: publicState(session.shown.state),
    socketState: socketState(session.shown.state),
    chain: session.own.chain.map(linkData),
    subAgents: relatives.map((child) => ({
      sessionId: child.ref.sessionId,
      state: publicState(child.own.state),
      chain: child.own.chain.map(linkData),
    })),
    skippedRecords: skippedIn(session),
    problems,
  };
}

/** Whether a problem is about this session's own file. */
export function concerns(problem: ScanProblem, session: Session): boolean {
  return session.facts.file !== undefined && problem.subject.includes(session.ref.sessionId);
}

/** A copied home, or a rewound session: which file counts would else be a riddle. */
function filesWords({ facts }: Session): string {
  const files = facts.lineage?.segments;
  return files === undefined || files < 2 ? '' : `  (the newest of ${files} with this id)`;
}

function skippedIn(session: Session): number {
  return session.own.chain.reduce((sum, link) => sum + (link.skipped ?? 0), 0);
}

function linkData(link: EvidenceLink) {
  const { says, at, ...rest } = link;
  return { ...rest, at: new Date(at).toISOString(), says: saysWords(says), raw: says };
}

function saysWords(says: EvidenceLink['says']): string {
  return says.kind === 'silent' ? 'somebody lives' : describe(says);
}

function describe(state: SessionState): string {
  switch (state.kind) {
    case 'working':
      return `working (${state.doing === 'tool' ? `tool ${state.tool?.name ?? ''}`.trim() : state.doing}${state.retrying ? ', retrying' : ''})`;
    case 'waiting':
      return `waiting for ${state.for} (${state.on})`;
    case 'rested':
      return `rested, ${state.outcome}`;
    case 'ended':
      return state.outcome ? `ended, ${state.outcome}` : 'ended';
    case 'starting':
    case 'idle':
    case 'unknown':
      return state.kind;
  }
}

function whyText(
  style: Style,
  session: Session,
  relatives: readonly Session[],
  problems: readonly ScanProblem[],
  world: World,
): string {
  const { facts, ref } = session;
  const state = stateWords(session);
  const lines = [
    `${paint(style, 'bold', facts.title ?? '(no title)')}`,
    `${labelOf(ref.runtimeId)} ${ref.sessionId}`,
    `in ${shortPath(facts.workDir, world.home)}`,
    '',
    `State: ${paint(style, state.look, state.text)}  (${publicState(session.shown.state)} in JSON)`,
    ...(session.shownFrom
      ? [
          `It is the state of sub-agent ${session.shownFrom}; its own is ${describe(session.own.state)} (R-14).`,
        ]
      : []),
    `Owner: ${lifeWords(session)}`,
    ...(session.shown.error ? [`Error: ${session.shown.error}`] : []),
    ...(facts.note ? [`Note: ${facts.note}`] : []),
    '',
    chainTable(style, session.own.chain, world),
    ...relatives.flatMap((child) => [
      '',
      `Sub-agent ${child.ref.sessionId}:`,
      chainTable(style, child.own.chain, world),
    ]),
    '',
    skippedText(skippedIn(session)),
    ...problems.map((problem) => `${problem.subject}: ${problem.reason} (${problem.skipped} left out)`),
    ...(facts.file ? [`File: ${shortPath(facts.file, world.home)}${filesWords(session)}`] : []),
  ];
  return lines.join('\n');
}

function skippedText(count: number): string {
  return count === 0
    ? 'No record was skipped.'
    : `${count} record${count === 1 ? '' : 's'} did not fit and ${count === 1 ? 'was' : 'were'} skipped.`;
}

function lifeWords(session: Session): string {
  const { life } = session.shown;
  const pids = session.facts.pids ?? [];
  if (life === 'alive') return pids.length > 0 ? `alive (pid ${pids.join(', ')})` : 'alive';
  return life === 'dead' ? 'gone' : 'not known';
}

function chainTable(style: Style, chain: readonly EvidenceLink[], world: World): string {
  if (chain.length === 0) return '(no feed has spoken)';
  const rows = chain.map((link) => [
    { text: link.verdict, ...(link.verdict === 'decides' ? { look: 'green' as const } : {}) },
    { text: `${link.feed}${link.owner ? ` (${link.owner})` : ''}` },
    { text: link.confidence },
    { text: age(link.at, world.now()) },
    { text: saysWords(link.says) },
    {
      text: `${link.detail}; ${link.why}${link.skipped ? `; ${link.skipped} skipped` : ''}`,
      look: 'dim' as const,
    },
  ]);
  return table(
    style,
    [
      { head: 'VERDICT' },
      { head: 'FEED' },
      { head: 'EVIDENCE' },
      { head: 'AGE', align: 'right' },
      { head: 'SAYS' },
      { head: 'BECAUSE' },
    ],
    rows,
  );
}
