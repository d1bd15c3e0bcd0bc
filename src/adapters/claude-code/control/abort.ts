import { named } from '../../../runtime/control/through-host.ts';
import type { AbortResult, Refusal } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import { checkProcess } from '../../../runtime/process/identity.ts';
import { killTree } from '../../../runtime/process/kill-tree.ts';
import type { ProcessHost } from '../../../runtime/process/types.ts';
import type { Session } from '../../../runtime/session/session.ts';
import type { ControlContext } from '../../adapter.ts';
import { type Possessor, possessorsOf } from './possession.ts';
import { controlHost } from './system.ts';

/**
 * Stops what another process does in a session. A turn in a terminal has no way in but its own keyboard; one of
 * print mode stops on SIGINT, which ends that process (2.1.197 and 2.1.332). `kill` ends the process trees, since the
 * user asked for exactly that, and says what is left (K1).
 */
export async function abortElsewhere(
  context: ControlContext,
  session: Session,
  kill: boolean,
): Promise<AbortResult> {
  const host = controlHost(context);
  const possessors = await possessorsOf(askedOf(session), context, host);
  const [first] = possessors;
  if (!first) return refused(NOBODY);
  const outOfReach = possessors.find((one) => one.by === 'background' || one.by === 'elsewhere');
  if (outOfReach) return refused(notOurs(outOfReach));
  const guessed = possessors.find((one) => one.by === 'old version');
  if (kill && guessed) return refused(notSure(guessed));
  if (kill) return killAll(possessors, host);
  if (first.by !== 'headless' || context.platform === 'win32') return refused(byKeyboard(first, session));
  return interrupt(first, host, session);
}

function askedOf({ ref, facts }: Session) {
  const version = facts.native?.['version'];
  return {
    sessionId: ref.sessionId,
    workDir: facts.workDir ?? '',
    entrypoint: facts.headless ? 'sdk-cli' : 'cli',
    ...(typeof version === 'string' ? { version } : {}),
  };
}

async function killAll(possessors: readonly Possessor[], host: ProcessHost): Promise<AbortResult> {
  const reports = await Promise.all(
    possessors.map(({ pid, startToken }) => killTree({ pid, startToken }, {}, host)),
  );
  const survivors = reports.flatMap((report) => report.survivors);
  if (reports.every((report) => report.gone)) {
    const pids = possessors.map(({ pid }) => pid).join(', ');
    return { kind: 'stopped', detail: `process ${pids} and all that it started are gone` };
  }
  return { kind: 'survived', survivors: await named(survivors) };
}

async function interrupt(
  { pid, startToken }: Possessor,
  host: ProcessHost,
  session: Session,
): Promise<AbortResult> {
  if ((await checkProcess({ pid, startToken }, host)) === 'gone') return refused(NOBODY);
  host.kill(pid, 'SIGINT');
  const end = performance.now() + CONTROL.interruptMs;
  while (performance.now() < end) {
    if ((await checkProcess({ pid, startToken }, host)) === 'gone') {
      return { kind: 'stopped', detail: `process ${pid} stopped its turn and ended` };
    }
    await Bun.sleep(POLL_MS);
  }
  return refused({
    reason: `process ${pid} did not stop within ${CONTROL.interruptMs / 1_000} s`,
    kind: 'timedOut',
    next: `To end it: shadowob-connector session-abort ${session.ref.sessionId} --kill`,
  });
}

/** How often it is looked whether an interrupted process has ended. */
const POLL_MS = 50;

/** Nothing runs that could be stopped. */
export const NOBODY: Refusal = {
  reason: 'no process has this session open, so nothing can be stopped',
  kind: 'refused',
  next: 'See: shadowob-connector session-list --state active',
};

function notOurs({ by, pid, job }: Possessor): Refusal {
  if (by === 'background') {
    return {
      reason: `Claude Code’s own daemon runs it (process ${pid}) and would start it again`,
      kind: 'unsupported',
      next: job ? `Claude’s own way: claude stop ${job}` : 'Claude’s own way: claude agents',
    };
  }
  return {
    reason: `process ${pid} runs in a container or on another computer`,
    kind: 'unsupported',
    next: 'Stop it there.',
  };
}

/** Nothing but its folder says that it has this session: it may have another one. */
function notSure({ pid }: Possessor): Refusal {
  return {
    reason: `process ${pid} runs an older Claude Code in this folder, and nothing proves that it has this session`,
    kind: 'unsupported',
    next: `Press Esc there, or if you are sure: kill ${pid}`,
  };
}

function byKeyboard({ by, pid }: Possessor, { ref }: Session): Refusal {
  const end = `shadowob-connector session-abort ${ref.sessionId} --kill`;
  if (by === 'headless') {
    return {
      reason: `another program runs it (process ${pid}), and Windows has no signal that stops just its turn`,
      kind: 'unsupported',
      next: `Stop it in that program, or end its process: ${end}`,
    };
  }
  return {
    reason: `it is open in a terminal (process ${pid}), and only the keyboard there stops its turn`,
    kind: 'unsupported',
    next: `Press Esc there, or end the program: ${end}`,
  };
}

function refused(refusal: Refusal): AbortResult {
  return { kind: 'refused', refusal };
}
