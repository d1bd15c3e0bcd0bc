import { abortAtHost, named } from '../../../runtime/control/through-host.ts';
import type { AbortRequest, AbortResult, Refusal } from '../../../runtime/control.ts';
import { CONTROL } from '../../../runtime/limits.ts';
import { findProcess } from '../../../runtime/process/identity.ts';
import { killTree } from '../../../runtime/process/kill-tree.ts';
import type { KillReport, ProcessHost } from '../../../runtime/process/types.ts';
import type { ControlContext } from '../../adapter.ts';
import { LOCAL_INSTANCE } from '../sightings.ts';
import { endOwnServer } from './own-server.ts';
import { isSameUrl, listServers } from './own-servers.ts';
import { errorWords } from './post.ts';
import { NOTHING_RUNS, serverRefused, unreachable } from './refusals.ts';
import { abortTurn, type Place } from './server-calls.ts';
import { isServerBusy } from './servers-work.ts';
import { type Candidate, type Survey, surveyLocal, surveyRemote } from './survey.ts';

/**
 * Stops a turn. Through the host that follows it, or straight at the server that runs it; `stopped` only when the
 * server no longer works on it, because its answer is `true` to everybody. A terminal without a port has no way in but
 * its own keyboard. `kill` ends the process tree that runs it, whoever's it is, and names what is left (K1).
 */
export async function abortSession(
  context: ControlContext,
  host: ProcessHost,
  { session, known, kill }: AbortRequest,
): Promise<AbortResult> {
  const survey =
    session.instanceId === LOCAL_INSTANCE
      ? await surveyLocal(context, host, session.sessionId, known?.facts.workDir)
      : await surveyRemote(context, session.instanceId, session.sessionId);
  if ('reason' in survey) return refused(survey);
  if (kill) return killSession(context, host, survey, await abortAtHost(context, session, true));
  const hosted = await abortAtHost(context, session, false);
  // A host without a turn of ours says no; a turn of somebody else's may run all the same.
  if (hosted && !(hosted.kind === 'refused' && hosted.refusal.kind === 'refused')) return hosted;
  if (survey.runner) return abortAt(survey.runner, survey);
  return refused(whyNot(survey));
}

function refused(refusal: Refusal): AbortResult {
  return { kind: 'refused', refusal };
}

function whyNot({ obstacle, owner, sessionId }: Survey): Refusal {
  if (!obstacle) return NOTHING_RUNS;
  if (!owner) return { ...NOTHING_RUNS, reason: obstacle.refusal.reason };
  if (owner.serves) return obstacle.refusal;
  return {
    reason: `it is open in a terminal (process ${owner.pid}), and only the keyboard there stops its turn`,
    kind: 'unsupported',
    next: `Press Esc twice there, or end the program: shadowob-connector session-abort ${sessionId} --kill`,
  };
}

const LOOK_MS = 100;

async function abortAt({ server }: Candidate, survey: Survey): Promise<AbortResult> {
  const { sessionId, directory } = survey;
  const place: Place = { endpoint: server.endpoint, sessionId, directory };
  const { url } = server.endpoint;
  const posted = await abortTurn(place);
  if (posted.kind === 'failed' && !posted.sent) return refused(unreachable(url, posted.reason));
  if (posted.kind === 'answer' && posted.status !== 200) {
    return refused(serverRefused(url, posted.status, errorWords(posted)));
  }
  const deadline = performance.now() + CONTROL.interruptMs;
  while (performance.now() < deadline) {
    const statuses = await server.api.statuses(directory);
    if (statuses.kind === 'ok' && !statuses.value.has(sessionId)) {
      return { kind: 'stopped', detail: `the server at ${url} has stopped its turn` };
    }
    await Bun.sleep(LOOK_MS);
  }
  return refused({
    reason: `the server at ${url} did not stop its turn within ${CONTROL.interruptMs / 1_000} s`,
    kind: 'timedOut',
    next: `To end its process: shadowob-connector session-abort ${sessionId} --kill`,
  });
}

async function killSession(
  context: ControlContext,
  host: ProcessHost,
  survey: Survey,
  hosted: AbortResult | undefined,
): Promise<AbortResult> {
  const { runner, owner } = survey;
  if (!runner && owner && !survey.ownerIsSure) return refused(onlySeems(owner.pid));
  const ended = hosted && hosted.kind !== 'refused' ? hosted : undefined;
  const pid = runner ? runner.server.endpoint.pid : owner?.pid;
  const report = runner?.ours
    ? await endRecorded(context, host, runner)
    : pid === undefined
      ? undefined
      : await killProcess(pid, host);
  if (!report) {
    const idle = ended ?? (await endIdleServer(context, host));
    return idle ?? refused(runner ? noPid(runner) : whyNoKill(survey));
  }
  const left = [...(ended?.kind === 'survived' ? ended.survivors : []), ...(await named(report.survivors))];
  if (!report.gone || left.length > 0) return { kind: 'survived', survivors: left };
  const whose = runner?.ours ? 'OpenCode’s server of this connector' : `process ${pid ?? ''}`;
  return { kind: 'stopped', detail: `${whose} and all that it started are gone` };
}

async function killProcess(pid: number, host: ProcessHost): Promise<KillReport> {
  const found = await findProcess(pid, host);
  return found ? killTree(found, {}, host) : { gone: true, survivors: [] };
}

/** A server of ours; one that our host has just ended is gone already. */
async function endRecorded(
  context: ControlContext,
  host: ProcessHost,
  { server }: Candidate,
): Promise<KillReport> {
  const record = listServers(context.connectorHome).find(({ url }) => isSameUrl(url, server.endpoint.url));
  return record ? endOwnServer(context, host, record) : { gone: true, survivors: [] };
}

/** Nothing runs the session: then what `--kill` can still end is the managed server, if it rests. */
async function endIdleServer(context: ControlContext, host: ProcessHost): Promise<AbortResult | undefined> {
  const record = listServers(context.connectorHome).find(({ life }) => life === 'managed');
  if (!record || (await isServerBusy(context, record))) return undefined;
  const report = await endOwnServer(context, host, record);
  if (!report.gone) return { kind: 'survived', survivors: await named(report.survivors) };
  return { kind: 'stopped', detail: 'no turn ran; OpenCode’s server of this connector was ended' };
}

/** A process that only seems to have the session is not killed for it. */
function onlySeems(pid: number): Refusal {
  return {
    reason: `process ${pid} may be the one that works on it, and so may another OpenCode`,
    kind: 'unsupported',
    next: `Look at its terminal; to end it all the same: kill ${pid}`,
  };
}

function noPid({ server }: Candidate): Refusal {
  return {
    reason: `the process behind ${server.endpoint.url} can’t be found from here`,
    kind: 'unsupported',
    next: 'End it where it was started, or stop its turn: session-abort without --kill',
  };
}

function whyNoKill({ obstacle }: Survey): Refusal {
  return obstacle ? { ...NOTHING_RUNS, reason: obstacle.refusal.reason } : NOTHING_RUNS;
}
