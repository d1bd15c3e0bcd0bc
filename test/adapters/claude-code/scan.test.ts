import { afterEach, beforeEach, describe, expect, test } from 'bun:test';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClaudeCode } from '../../../src/adapters/claude-code/index.ts';
import { INDEX_SCOPE } from '../../../src/adapters/claude-code/reading.ts';
import { RUNTIME_ID } from '../../../src/adapters/claude-code/session.ts';
import type { FeedScan, ScanOptions } from '../../../src/runtime/feed.ts';
import type { FileSystemPort } from '../../../src/runtime/files/file-system.ts';
import { publicState } from '../../../src/runtime/session/project.ts';
import { createRegistry } from '../../../src/runtime/session/registry.ts';
import type { Session } from '../../../src/runtime/session/session.ts';
import { memoryIndex } from '../../../src/runtime/store/memory-index.ts';
import { createTempHome, idOf, NOW, pathOf, rowsOf, type TempHome, ticksBefore } from './temp-home.ts';

let temp: TempHome;
beforeEach(() => {
  temp = createTempHome();
  mkdirSync(join(temp.home, '.claude', 'sessions'), { recursive: true });
});
afterEach(() => temp.close());

type Context = ReturnType<TempHome['context']>['context'];

async function look(
  context: Context = temp.context().context,
  options: ScanOptions = {},
  adapter = createClaudeCode(temp.host),
): Promise<{ scan: FeedScan; sessions: Session[]; of(id: string): Session }> {
  const scan = await adapter.scan(context, options);
  const registry = createRegistry();
  registry.replace(RUNTIME_ID, scan.sightings, context.now());
  const sessions = registry.sessions();
  const of = (id: string): Session => {
    const found = sessions.find((session) => session.ref.sessionId === id);
    if (!found) throw new Error(`${id} is not listed`);
    return found;
  };
  return { scan, sessions, of };
}
const word = (session: Session): string => publicState(session.shown.state);
const AGO = NOW - 120_000;

function live(pid: number, sessionId: string, more: object = {}): void {
  const startTicks = ticksBefore(90_000);
  temp.run(pid, { startTicks });
  const base = {
    pid,
    sessionId,
    procStart: startTicks,
    cwd: '/home/dev/acme-app',
    version: '2.1.332',
    entrypoint: 'cli',
  };
  temp.write(
    `.claude/sessions/${pid}.json`,
    JSON.stringify({ ...base, kind: 'interactive', startedAt: AGO, statusUpdatedAt: NOW - 30_000, ...more }),
  );
}
const working = (id: string, more = {}): string => {
  const rows = rowsOf(id, AGO, more);
  return rows.prompt('Make a build dir') + rows.call('Bash', { command: 'mkdir build' }) + rows.meta('mode');
};

describe('scan: a session with a live owner', () => {
  test('what a list shows of it', async () => {
    const id = idOf(1);
    temp.write(pathOf(id), rowsOf(id, AGO).prompt('Make a build dir') + rowsOf(id, AGO).done());
    live(4242, id, { status: 'idle' });
    const session = (await look()).of(id);
    expect(word(session)).toBe('completed');
    expect(session.shown.life).toBe('alive');
    expect(session.facts).toMatchObject({
      title: 'Make a build dir',
      workDir: '/home/dev/acme-app',
      model: 'claude-opus-5-5',
      startedAt: AGO,
      lastActivityAt: AGO + 3_000,
      source: 'transcript',
      contextUsage: { usedTokens: 1_012 },
      headless: false,
      pids: [4242],
      native: { transcriptFile: `${id}.jsonl`, version: '2.1.332', gitBranch: 'main' },
    });
    expect(session.facts.file).toEndWith(`${id}.jsonl`);
    expect(session.facts.sizeBytes).toBeGreaterThan(100);
  });

  test.each([
    ['busy', { status: 'busy' }, 'tool_call'],
    ['waiting', { status: 'waiting', waitingFor: 'permission prompt' }, 'waiting_for_approval'],
    ['without a status', {}, 'tool_call'],
    ['resting, and nothing says that the turn ended', { status: 'idle' }, 'stopped'],
  ])('%s', async (_, more, want) => {
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    live(4242, idOf(1), more);
    expect(word((await look()).of(idOf(1)))).toBe(want);
  });

  test('C7, S6 a tool that has run for an hour still runs', async () => {
    const rows = rowsOf(idOf(1), NOW - 3_600_000);
    temp.write(
      pathOf(idOf(1)),
      rows.prompt('Build') + rows.call('Bash', { command: 'make -j' }),
      NOW - 3_599_000,
    );
    live(4242, idOf(1));
    expect(word((await look()).of(idOf(1)))).toBe('tool_call');
  });

  test('S1 a turn without a status that has gone silent is not called working for ever', async () => {
    const rows = rowsOf(idOf(1), NOW - 3_600_000);
    temp.write(
      pathOf(idOf(1)),
      rows.prompt('Build') + rows.call('Bash', {}) + rows.result(),
      NOW - 3_598_000,
    );
    live(4242, idOf(1));
    expect(word((await look()).of(idOf(1)))).toBe('unknown');
  });

  test('R-17 a reply cut at the output limit goes on while its process lives', async () => {
    const cut = rowsOf(idOf(1), AGO).done().replace('"end_turn"', '"max_tokens"');
    temp.write(pathOf(idOf(1)), rowsOf(idOf(1), AGO).prompt('Write') + cut);
    live(4242, idOf(1));
    expect(word((await look()).of(idOf(1)))).toBe('running');
    temp.end(4242);
    rmSync(join(temp.home, '.claude/sessions/4242.json'));
    expect(word((await look()).of(idOf(1)))).toBe('blocked');
  });

  test('a terminal in which nothing was asked yet is idle, and has no file', async () => {
    live(4242, idOf(7), {
      status: 'waiting',
      waitingFor: 'dialog open',
      name: 'my session',
      nameSource: 'user',
    });
    const session = (await look()).of(idOf(7));
    expect(word(session)).toBe('idle');
    expect(session.facts).toMatchObject({ title: 'my session', workDir: '/home/dev/acme-app', pids: [4242] });
  });

  test('R-04 two processes with one session: the busier one speaks', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    live(4242, idOf(1), { status: 'idle' });
    live(4243, idOf(1), { status: 'busy', entrypoint: 'sdk-cli' });
    const session = (await look()).of(idOf(1));
    expect(word(session)).toBe('tool_call');
    expect(session.facts.pids).toEqual([4242, 4243]);
  });

  test('G2 sub-agents are a number of their session, never rows', async () => {
    const id = idOf(1);
    temp.write(pathOf(id), working(id));
    live(4242, id, { status: 'busy' });
    const agent = rowsOf(id, AGO).done().replace('"isSidechain":false', '"isSidechain":true');
    temp.write(`.claude/projects/-home-dev-acme-app/${id}/subagents/agent-a1.jsonl`, agent);
    temp.write(`.claude/projects/-home-dev-acme-app/${id}/subagents/agent-a2.jsonl`, agent);
    temp.write(`.claude/projects/-home-dev-acme-app/${id}/subagents/agent-a1.meta.json`, '{}');
    const { sessions, of } = await look();
    expect(sessions).toHaveLength(1);
    expect(of(id).facts.lineage).toEqual({ subAgents: 2 });
    expect(word(of(id))).toBe('tool_call');
  });
});

describe('scan: a session whose owner is gone (S12, S14)', () => {
  test('the process died and left its file: the turn was stopped', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    live(4242, idOf(1), { status: 'busy' });
    temp.end(4242);
    const session = (await look()).of(idOf(1));
    expect([word(session), session.shown.life]).toEqual(['stopped', 'dead']);
    expect(session.facts.pids).toBeUndefined();
  });

  test('its pid now belongs to another process', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    live(4242, idOf(1), { status: 'waiting', waitingFor: 'permission prompt' });
    temp.end(4242);
    temp.run(4242, { comm: 'vim', startTicks: ticksBefore(1_000) });
    expect(word((await look()).of(idOf(1)))).toBe('stopped');
  });

  test('its file is gone: the version would have one', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    expect(word((await look()).of(idOf(1)))).toBe('stopped');
  });

  test('R-02 a turn that had ended keeps its outcome', async () => {
    temp.write(pathOf(idOf(1)), rowsOf(idOf(1), AGO).prompt('Hi') + rowsOf(idOf(1), AGO).done());
    const session = (await look()).of(idOf(1));
    expect([word(session), session.shown.life]).toEqual(['completed', 'dead']);
  });

  test('a left-behind file without a transcript is no session', async () => {
    live(4242, idOf(1), { status: 'busy' });
    temp.end(4242);
    expect((await look()).sessions).toEqual([]);
  });

  test('the registry can’t be read: nothing is proven, and an open turn ages', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    rmSync(join(temp.home, '.claude/sessions'), { recursive: true });
    const session = (await look()).of(idOf(1));
    expect([word(session), session.shown.life]).toEqual(['tool_call', 'unknown']);
    const later = temp.context({ now: NOW + 3_600_000 }).context;
    expect(word((await look(later)).of(idOf(1)))).toBe('unknown');
  });

  test('a file that stays torn proves nothing, and is named', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    temp.write('.claude/sessions/4242.json', '{"pid":4242,"sessi');
    const { of, scan } = await look();
    expect([word(of(idOf(1))), of(idOf(1)).shown.life]).toEqual(['tool_call', 'unknown']);
    expect(scan.problems).toEqual([
      { subject: join(temp.home, '.claude/sessions/4242.json'), reason: 'is half written', skipped: 1 },
    ]);
  });

  test('R-16 a file that is torn for a moment keeps its last value', async () => {
    const adapter = createClaudeCode(temp.host);
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    live(4242, idOf(1), { status: 'waiting', waitingFor: 'permission prompt' });
    await look(temp.context().context, {}, adapter);
    temp.write('.claude/sessions/4242.json', '');
    const { of, scan } = await look(temp.context().context, {}, adapter);
    expect(word(of(idOf(1)))).toBe('waiting_for_approval');
    expect(scan.problems).toEqual([]);
  });

  test('pids of another container can’t be judged: its word counts for a while', async () => {
    mkdirSync(join(temp.proc, 'self', 'ns'), { recursive: true });
    symlinkSync('pid:[4026531836]', join(temp.proc, 'self', 'ns', 'pid'));
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    live(4242, idOf(1), {
      status: 'waiting',
      waitingFor: 'permission prompt',
      pidDomain: 'linux:0:pid:[4026539999]',
    });
    temp.end(4242);
    const session = (await look()).of(idOf(1));
    expect([word(session), session.shown.life]).toEqual(['waiting_for_approval', 'unknown']);
  });

  test('the end that is written while we look is seen', async () => {
    const id = idOf(1);
    const path = temp.write(pathOf(id), working(id), NOW - 50);
    const { context } = temp.context();
    const files: FileSystemPort = {
      ...(context.files as FileSystemPort),
      names(folder) {
        if (folder.endsWith('sessions'))
          temp.append(pathOf(id), rowsOf(id, AGO).result() + rowsOf(id, AGO).done());
        return (context.files as FileSystemPort).names(folder);
      },
    };
    expect(path).toEndWith('.jsonl');
    expect(word((await look({ ...context, files })).of(id))).toBe('completed');
  });
});

describe('scan: what is a session, and whose', () => {
  test('P1, G1, G4, C26 the file’s name is the identity; all else is none', async () => {
    const [one, two] = [idOf(1), idOf(2)];
    const other = rowsOf(two, AGO);
    temp.write(pathOf(one, '-home-dev-my-app'), other.prompt('In one folder') + other.done());
    temp.write(pathOf(two, '-home-dev-my-app'), working(two, { cwd: '/home/dev/my_app' }));
    temp.write('.claude/projects/-home-dev-my-app/agent-a1b2c3.jsonl', working(one));
    temp.write('.claude/projects/-home-dev-my-app/notes.jsonl', working(one));
    temp.write('.claude/projects/-home-dev-my-app/.jsonl', working(one));
    temp.write('.claude/projects/-home-dev-my-app/memory/x.md', '');
    temp.write(`.claude/projects/${idOf(9)}.jsonl`, working(idOf(9)));
    const { sessions, of } = await look();
    expect(sessions.map((session) => session.ref.sessionId).sort()).toEqual([one, two]);
    expect(of(one).facts.title).toBe('In one folder');
    expect(of(two).facts.workDir).toBe('/home/dev/my_app');
  });

  test('CLAUDE_CONFIG_DIR and ~/.claude are both read', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    temp.write(pathOf(idOf(2)).replace('.claude', 'work-claude'), working(idOf(2)));
    const { context } = temp.context({ env: { CLAUDE_CONFIG_DIR: join(temp.home, 'work-claude') } });
    const { sessions, scan } = await look(context);
    expect(sessions).toHaveLength(2);
    expect(scan.instances[0]?.metadata).toMatchObject({
      transcriptRoot: join(temp.home, 'work-claude/projects'),
    });
  });

  test('a home that is a link to itself is read once', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    symlinkSync(join(temp.home, '.claude'), join(temp.home, 'linked'));
    const { context, work } = temp.context({ env: { CLAUDE_CONFIG_DIR: join(temp.home, 'linked') } });
    expect((await look(context)).sessions).toHaveLength(1);
    expect(work.opened).toBe(1);
  });

  test('a home behind a link, and a project folder behind a link', async () => {
    temp.write(pathOf(idOf(1)).replace('.claude', 'real'), working(idOf(1)));
    mkdirSync(join(temp.home, 'elsewhere'), { recursive: true });
    writeFileSync(join(temp.home, 'elsewhere', `${idOf(2)}.jsonl`), working(idOf(2)));
    symlinkSync(join(temp.home, 'elsewhere'), join(temp.home, 'real/projects/-linked'));
    rmSync(join(temp.home, '.claude'), { recursive: true });
    symlinkSync(join(temp.home, 'real'), join(temp.home, '.claude'));
    expect((await look()).sessions).toHaveLength(2);
  });

  test('one id in two homes is one row: the file that was written last', async () => {
    const id = idOf(1);
    temp.write(pathOf(id), rowsOf(id, AGO).prompt('Old copy'), NOW - 90_000);
    temp.write(pathOf(id).replace('.claude', 'b'), rowsOf(id, AGO).prompt('Newer'), NOW - 30_000);
    const { context } = temp.context({ env: { CLAUDE_CONFIG_DIR: join(temp.home, 'b') } });
    const { sessions } = await look(context);
    expect(sessions.map((session) => [session.facts.title, session.facts.lineage])).toEqual([
      ['Newer', { segments: 2 }],
    ]);
  });

  test('no Claude Code at all: nothing, and no problem', async () => {
    rmSync(join(temp.home, '.claude'), { recursive: true });
    const { scan } = await look();
    expect([scan.sightings, scan.problems, scan.instances[0]?.status]).toEqual([[], [], 'missing']);
  });

  test('a folder and a file that can’t be read are named; the others are listed', async () => {
    for (const n of [1, 2]) temp.write(pathOf(idOf(n), `-p${n}`), working(idOf(n)));
    temp.write(pathOf(idOf(3), '-p2'), working(idOf(3)));
    const denied = (): never => {
      throw Object.assign(new Error('denied'), { code: 'EACCES' });
    };
    const { context } = temp.context();
    const real = context.files as FileSystemPort;
    const files: FileSystemPort = {
      ...real,
      names: (folder) => (folder.endsWith('-p1') ? denied() : real.names(folder)),
      open: (path) => (path.includes(idOf(3)) ? denied() : real.open(path)),
    };
    const { sessions, scan } = await look({ ...context, files });
    expect(sessions.map((session) => session.ref.sessionId).sort()).toEqual([idOf(2), idOf(3)]);
    expect(scan.problems.map((problem) => problem.reason)).toEqual([
      'can’t be read (EACCES)',
      'can’t be read (EACCES)',
    ]);
  });

  test('C21 rows from the future count as written when the file was', async () => {
    const rows = rowsOf(idOf(1), NOW + 600_000);
    temp.write(pathOf(idOf(1)), rows.prompt('Build') + rows.call('Bash', { command: 'make' }), NOW - 5_000);
    live(4242, idOf(1));
    const session = (await look()).of(idOf(1));
    expect(word(session)).toBe('tool_call');
    expect(session.facts.lastActivityAt).toBe(NOW - 5_000);
    expect(session.shown.evidence?.at).toBe(NOW - 5_000);
  });
});

describe('scan: forks (G6)', () => {
  const fork = (from: string, to: string, requestSessionId: boolean): string => {
    const copied = (rowsOf(from, AGO).prompt('First') + rowsOf(from, AGO).done()).replaceAll(
      `"sessionId":"${from}"`,
      `"sessionId":"${to}"`,
    );
    const marked = requestSessionId
      ? copied.replace('"type":"assistant"', `"requestSessionId":"${from}","type":"assistant"`)
      : copied;
    const note = { operation: 'enqueue', content: 'x', timestamp: new Date(AGO + 90_000).toISOString() };
    const own = rowsOf(to, AGO + 90_000);
    return (
      own.meta('mode') + own.meta('queue-operation', note) + marked + own.prompt('Second', 10) + own.done()
    );
  };

  test.each([
    ['2.1.332 names the original on copied replies', true],
    ['2.1.197: the one that begins with the same row', false],
  ])('%s', async (_, named) => {
    const [from, to] = [idOf(1), idOf(2)];
    temp.write(pathOf(from), rowsOf(from, AGO).prompt('First') + rowsOf(from, AGO).done());
    temp.write(pathOf(to), fork(from, to, named), NOW - 1_000);
    const { of } = await look();
    expect(of(to).facts.lineage).toEqual({ forkedFromId: from });
    expect(of(from).facts.lineage).toBeUndefined();
    expect(of(to).facts.startedAt).toBe(AGO + 90_000);
    expect(of(to).facts.lastActivityAt).toBe(AGO + 93_000);
  });
});

describe('scan: work (R-27, R-38)', () => {
  test('G1 a project folder with 107,000 files of sub-agents: none of them is stat’ed or opened', async () => {
    const folder = join(temp.home, '.claude/projects/-big');
    mkdirSync(folder, { recursive: true });
    const { context, work } = temp.context();
    const real = context.files as FileSystemPort;
    const agents = Array.from(
      { length: 107_000 },
      (_, i) => `agent-${i.toString(16).padStart(17, '0')}.jsonl`,
    );
    temp.write(pathOf(idOf(1), '-big'), working(idOf(1)));
    const files: FileSystemPort = {
      ...real,
      names: (path) => (path === folder ? [...agents, `${idOf(1)}.jsonl`] : real.names(path)),
    };
    const { sessions } = await look({ ...context, files });
    expect(sessions).toHaveLength(1);
    // Its own stat, the second look at an open turn, and the roster.
    expect([work.opened, work.stats]).toEqual([1, 3]);
  });

  test('an unchanged file is never opened again, by the same process or by the next', async () => {
    const index = memoryIndex();
    for (const n of [1, 2, 3]) temp.write(pathOf(idOf(n)), working(idOf(n)));
    const adapter = createClaudeCode(temp.host);
    const first = temp.context({ index });
    const before = await look(first.context, {}, adapter);
    expect(first.work.opened).toBe(3);
    for (const again of [adapter, createClaudeCode(temp.host)]) {
      const next = temp.context({ index });
      const after = await look(next.context, {}, again);
      expect(next.work.opened).toBe(0);
      expect(after.sessions.map(word)).toEqual(before.sessions.map(word));
      expect(after.sessions.map((s) => s.facts)).toEqual(before.sessions.map((s) => s.facts));
    }
  });

  test('one that has grown is, and only that one', async () => {
    const index = memoryIndex();
    for (const n of [1, 2, 3]) temp.write(pathOf(idOf(n)), working(idOf(n)));
    await look(temp.context({ index }).context);
    temp.append(pathOf(idOf(2)), rowsOf(idOf(2), AGO).result() + rowsOf(idOf(2), AGO).done());
    const next = temp.context({ index });
    expect(word((await look(next.context)).of(idOf(2)))).toBe('completed');
    expect(next.work.opened).toBe(1);
  });

  test('the index holds cleaned titles and names of tools; no command, path, message or error text', async () => {
    const index = memoryIndex();
    const [one, two] = [idOf(1), idOf(2)];
    temp.write(pathOf(one), working(one));
    const error = rowsOf(two, AGO)
      .done('API Error: secret words')
      .replace(
        '"type":"assistant"',
        '"isApiErrorMessage":true,"error":"rate_limit","apiErrorStatus":429,"type":"assistant"',
      );
    temp.write(pathOf(two), rowsOf(two, AGO).prompt('Two') + error);
    await look(temp.context({ index }).context);
    const values = [...index.load(INDEX_SCOPE).values()].map((entry) => entry.value).join('\n');
    expect(values).toContain('Make a build dir');
    expect(values).toContain('rate_limit');
    expect(values).not.toMatch(/mkdir build|secret words|Done\./);
  });

  test('R-38 an error of a session that nobody holds reads the same, whether its file was opened or not', async () => {
    const index = memoryIndex();
    const id = idOf(1);
    const error = rowsOf(id, AGO)
      .done('API Error: secret words')
      .replace(
        '"type":"assistant"',
        '"isApiErrorMessage":true,"error":"rate_limit","apiErrorStatus":429,"type":"assistant"',
      );
    temp.write(pathOf(id), rowsOf(id, AGO).prompt('One') + error);
    const looks = [temp.context({ index }), temp.context({ index })];
    const told: (string | undefined)[] = [];
    for (const { context } of looks) {
      told.push((await look(context, {}, createClaudeCode(temp.host))).of(id).shown.error);
    }
    expect(told).toEqual(['rate limit (429)', 'rate limit (429)']);
    live(4242, id, { status: 'idle' });
    const owned = await look(temp.context({ index }).context, {}, createClaudeCode(temp.host));
    expect(owned.of(id).shown.error).toBe('API Error: secret words');
  });

  test('with a live owner the label of an open call is read again, since the index does not hold it', async () => {
    const index = memoryIndex();
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    live(4242, idOf(1), { status: 'busy' });
    await look(temp.context({ index }).context);
    const next = temp.context({ index });
    const adapter = createClaudeCode(temp.host);
    const session = (await look(next.context, {}, adapter)).of(idOf(1));
    expect(session.shown.state).toMatchObject({ tool: { name: 'Bash', command: 'mkdir build' } });
    const again = temp.context({ index });
    await look(again.context, {}, adapter);
    expect(again.work.opened).toBe(next.work.opened - 1);
  });

  test('files that vanished are forgotten; those of an unreadable folder are not', async () => {
    const index = memoryIndex();
    for (const n of [1, 2]) temp.write(pathOf(idOf(n)), working(idOf(n)));
    await look(temp.context({ index }).context);
    rmSync(join(temp.home, pathOf(idOf(1))));
    const { context } = temp.context({ index });
    const real = context.files as FileSystemPort;
    const names = (): never => {
      throw Object.assign(new Error('denied'), { code: 'EACCES' });
    };
    await look({ ...context, files: { ...real, names } });
    expect(index.load(INDEX_SCOPE).size).toBe(2);
    await look(temp.context({ index }).context);
    expect([...index.load(INDEX_SCOPE).keys()]).toEqual([join(temp.home, pathOf(idOf(2)))]);
  });

  test('a shortened id looks at its own files only, and forgets nothing', async () => {
    const index = memoryIndex();
    const ids = ['aaaaaaaa', 'bbbbbbbb'].map((head) => `${head}-0000-4000-8000-000000000001`);
    for (const id of ids) temp.write(pathOf(id), working(id));
    await look(temp.context({ index }).context);
    const next = temp.context({ index });
    const { sessions } = await look(next.context, { only: 'AAAA' });
    expect(sessions.map((session) => session.ref.sessionId)).toEqual([ids[0] ?? '']);
    expect(next.work.stats).toBe(3);
    expect(index.load(INDEX_SCOPE).size).toBe(2);
  });

  test('what is older than asked for is listed without being opened', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1)), NOW - 90_000_000);
    temp.write(pathOf(idOf(2)), working(idOf(2)), NOW - 60_000);
    const next = temp.context();
    const { of } = await look(next.context, { since: NOW - 3_600_000 });
    expect(next.work.opened).toBe(1);
    expect([word(of(idOf(1))), of(idOf(1)).facts.lastActivityAt]).toEqual(['unknown', NOW - 90_000_000]);
  });
});

describe('scan: background jobs (M3)', () => {
  const job = (id: string, more: object): void => {
    const state = { sessionId: id, state: 'working', tempo: 'active', cwd: '/home/dev/acme-app', ...more };
    temp.write(`.claude/jobs/${id.slice(0, 8)}/state.json`, JSON.stringify(state));
  };

  test('one that waits says for what, without the command', async () => {
    const id = idOf(1);
    temp.write(pathOf(id), working(id));
    live(4242, id, { status: 'waiting', waitingFor: 'permission prompt', kind: 'bg', jobId: id.slice(0, 8) });
    job(id, { tempo: 'blocked', needs: 'approve Bash: mkdir secret' });
    const session = (await look()).of(id);
    expect(session.facts.note).toBe('the background job needs you: approve');
    expect(session.facts.native).toMatchObject({ jobId: '00000000' });
  });

  test('one that is over has no process, whatever its version writes', async () => {
    const id = idOf(1);
    temp.write(pathOf(id), working(id, { version: '2.0.1' }));
    job(id, { state: 'stopped', tempo: 'idle' });
    expect(word((await look()).of(id))).toBe('stopped');
  });

  test('a worker of the roster lives before it has a live file', async () => {
    const id = idOf(1);
    temp.write(pathOf(id), working(id));
    temp.run(777, { startTicks: '5' });
    const workers = { [id.slice(0, 8)]: { pid: 777, procStart: '5', sessionId: id, cliVersion: '2.1.332' } };
    temp.write('.claude/daemon/roster.json', JSON.stringify({ workers }));
    expect([word((await look()).of(id)), (await look()).of(id).shown.life]).toEqual(['tool_call', 'alive']);
    temp.end(777);
    expect(word((await look()).of(id))).toBe('stopped');
  });

  test('broken job and roster files cost nothing', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1)));
    temp.write('.claude/jobs/00000000/state.json', '{"sess');
    temp.write('.claude/jobs/pins.json', '[]');
    temp.write('.claude/daemon/roster.json', '{"workers":{"a":7,"b":{"pid":"x"}}}');
    expect((await look()).sessions).toHaveLength(1);
  });
});

describe('scan: versions without live files (as R-19, P2)', () => {
  const old = { version: '2.0.14' };

  test('a claude process in its folder that started before its last write has it', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1), old));
    temp.run(900, { cwd: '/home/dev/acme-app', startTicks: ticksBefore(90_000) });
    const session = (await look()).of(idOf(1));
    expect([word(session), session.shown.life, session.facts.pids]).toEqual(['tool_call', 'alive', [900]]);
    expect(session.shown.evidence?.confidence).toBe('inferred');
  });

  test.each([
    ['none runs', undefined],
    ['one runs elsewhere', { cwd: '/home/dev/other' }],
    ['one started after the last write', { cwd: '/home/dev/acme-app', startTicks: ticksBefore(1_000) }],
    [
      'P2 an editor with its words in its arguments',
      { comm: 'vim', argv: ['vim', 'claude', '--resume', idOf(1)], cwd: '/home/dev/acme-app' },
    ],
  ])('stopped: %s', async (_, process) => {
    temp.write(pathOf(idOf(1)), working(idOf(1), old));
    if (process) temp.run(900, process);
    expect(word((await look()).of(idOf(1)))).toBe('stopped');
  });

  test('one process has one session: the one that was written last', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1), old), NOW - 50_000);
    temp.write(pathOf(idOf(2)), working(idOf(2), old), NOW - 40_000);
    temp.run(900, { cwd: '/home/dev/acme-app', startTicks: ticksBefore(90_000) });
    const { of } = await look();
    expect([word(of(idOf(1))), word(of(idOf(2)))]).toEqual(['stopped', 'tool_call']);
  });

  test('a process that has a live file has another session', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1), old));
    live(4242, idOf(5), { status: 'idle' });
    temp.end(4242);
    temp.run(4242, { cwd: '/home/dev/acme-app', startTicks: ticksBefore(90_000) });
    expect(word((await look()).of(idOf(1)))).toBe('stopped');
  });

  test('a process whose folder can’t be read leaves it open', async () => {
    temp.write(pathOf(idOf(1)), working(idOf(1), old));
    temp.run(900, {});
    expect((await look()).of(idOf(1)).shown.life).toBe('unknown');
  });
});

describe('scan: start-up dialogs (S8)', () => {
  const waiting = { cwd: '/home/dev/new', terminal: '/dev/pts/3', startTicks: ticksBefore(60_000) };

  test('a terminal without a session is told of, and is no session', async () => {
    temp.run(900, { ...waiting, environ: ['SECRET=x', `HOME=${temp.home}`] });
    const { scan } = await look();
    expect(scan.sightings).toEqual([]);
    expect(scan.instances[0]?.metadata).toMatchObject({ waitingAtStart: 1 });
    expect(scan.problems).toEqual([
      {
        subject: 'Claude Code in /home/dev/new (process 900)',
        reason: 'waits at a start-up dialog and needs set-up there; it has no session yet',
        skipped: 0,
      },
    ]);
  });

  test.each([
    ['has a live file', () => live(900, idOf(1), { status: 'idle' })],
    ['only just started', () => temp.run(900, { ...waiting, startTicks: ticksBefore(1_000) })],
    ['is in print mode', () => temp.run(900, { ...waiting, argv: ['claude', '-p', 'x'] })],
    ['does something else', () => temp.run(900, { ...waiting, argv: ['claude', 'mcp', 'serve'] })],
    ['has no terminal', () => temp.run(900, { ...waiting, terminal: '/dev/null' })],
    ['has another home', () => temp.run(900, { ...waiting, environ: ['HOME=/home/other'] })],
    [
      'has another configuration',
      () => temp.run(900, { ...waiting, environ: [`HOME=${temp.home}`, 'CLAUDE_CONFIG_DIR=/x'] }),
    ],
    ['belongs to somebody else', () => temp.run(900, waiting)],
  ])('not one that %s', async (_, start) => {
    start();
    const { scan } = await look();
    expect(scan.problems).toEqual([]);
  });
});
