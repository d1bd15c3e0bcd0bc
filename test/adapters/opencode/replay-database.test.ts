import { afterAll, describe, expect, test } from 'bun:test';
import { createOpencode } from '../../../src/adapters/opencode/index.ts';
import { tailOf } from '../../../src/adapters/opencode/remote.ts';
import { turnClaim } from '../../../src/adapters/opencode/rows.ts';
import { type Json, type KeyRow, keyOf, type Look, lines, scenarios, text } from './recordings.ts';
import { createScore } from './scoring.ts';
import {
  contextFor,
  createStore,
  fakeMachine,
  inFolder,
  registryOf,
  type Store,
  stateIn,
  tui,
} from './world.ts';

const score = createScore('database alone');
const dead = createScore('database, its processes known to be dead');
afterAll(() => {
  score.print();
  dead.print();
});
const AS_ONE = { streamingIsRunning: true };

type Owners = 'alive' | 'dead' | 'not known';

/** What the rows alone support: the first word of the key. "running if the process lives" is for a live one. */
function wordOf(row: KeyRow): string {
  const word = /^[a-z_]+/.exec(row.disk_only ?? '')?.[0] ?? '';
  return word === 'no' ? 'unknown' : word;
}

function lay(store: Store, look: Look): string {
  const session = look.session ?? {};
  const id = String(session['id']);
  if (look.session) store.session(session);
  for (const message of look.messages) store.message(id, message);
  for (const part of look.parts) store.part(id, part);
  if (look.event_seq !== null) store.sequence(id, look.event_seq);
  return id;
}

/** A real scan of a real SQLite file that holds the recorded rows, on a machine with the given owner. */
async function stateOf(look: Look, owners: Owners): Promise<string> {
  return inFolder(async (folder) => {
    const store = createStore(`${folder}/data`);
    const id = lay(store, look);
    store.close();
    const newest = Math.max(
      ...[...look.messages, ...look.parts].map((row) => Number(row['time_updated'])),
      0,
    );
    const now = newest + 60_000;
    const cwd = String(look.session?.['directory'] ?? '/home/dev2/acme-app');
    const owner = tui(4_711, store.path, cwd, newest - 60_000);
    const machine = { alive: [owner], dead: [], 'not known': [{ ...owner, closed: true }] }[owners];
    const context = contextFor(`${folder}/data`, { now: () => now });
    const scan = await createOpencode(fakeMachine(folder, machine, now)).scan(context);
    return stateIn(registryOf(scan, now), id);
  });
}

describe('every recorded look at the database, built again as a real one', () => {
  const scored = scenarios().filter((name) =>
    lines<Look>(name, 'db.jsonl').some((look) => look.messages !== undefined),
  );

  test('there are looks to score', () => {
    expect(scored.length).toBeGreaterThan(5);
  });

  for (const scenario of scored) {
    test(scenario, async () => {
      const before = [score.wrong.length, dead.wrong.length];
      const looks = lines<Look>(scenario, 'db.jsonl');
      for (const row of keyOf(scenario, 'db.jsonl')) {
        const look = looks[row.line - 1];
        // The look at the v2 tables has a test of its own below.
        if (!look?.messages) continue;
        const where = `${scenario} db.jsonl:${row.line} "${look.note}"`;
        const word = wordOf(row);
        score.row(`${where}, owner alive`, await stateOf(look, 'alive'), word, AS_ONE);
        const isOpen = word === 'running' || word === 'blocked';
        const open = `${where}, an open turn`;
        // R-19 and the keys: stopped once it is known dead, unknown if nobody can tell; an outcome stands.
        dead.row(`${open}, owner dead`, await stateOf(look, 'dead'), isOpen ? 'stopped' : word, AS_ONE);
        const untold = await stateOf(look, 'not known');
        score.row(`${open}, owner not known`, untold, isOpen ? 'unknown' : word, AS_ONE);
      }
      expect([...score.wrong.slice(before[0]), ...dead.wrong.slice(before[1])]).toEqual([]);
    });
  }

  test('after a kill the truth of the key is reached: stopped, and completed after the follow-up (sigkill-mid-turn)', async () => {
    const looks = lines<Look>('sigkill-mid-turn', 'db.jsonl').slice(1);
    const truths = keyOf('sigkill-mid-turn', 'db.jsonl')
      .slice(1)
      .map((row) => row.state);
    expect(await Promise.all(looks.map((look) => stateOf(look, 'dead')))).toEqual([...truths]);
  });
});

describe('a session of the v2 routes keeps its rows elsewhere (v2-api)', () => {
  const [, tables] = lines<{ session_message: readonly Json[]; session_input: readonly Json[] }>(
    'v2-api',
    'db.jsonl',
  );
  const [look] = lines<Look>('v2-api', 'db.jsonl');

  const stateWith = (rows: readonly Json[], owners: Owners): Promise<string> =>
    inFolder(async (folder) => {
      if (!look) throw new Error('the recording has no look');
      const store = createStore(`${folder}/data`);
      const id = lay(store, look);
      for (const row of rows) {
        const created = (JSON.parse(String(row['data'])) as { time: { created: number } }).time.created;
        store.database
          .query(
            'INSERT INTO session_message (id, session_id, type, seq, time_created, time_updated, data) VALUES (?, ?, ?, ?, ?, ?, ?)',
          )
          .run(
            `m${row['seq']}`,
            id,
            String(row['type']),
            Number(row['seq']),
            created,
            created,
            String(row['data']),
          );
      }
      store.close();
      const now = 1_796_070_000_000;
      const owner = {
        ...tui(9, store.path, '/home/dev2/acme-app', 1_796_069_000_000),
        argv: ['opencode', 'serve'],
      };
      const host = fakeMachine(folder, owners === 'alive' ? [owner] : [], now);
      const scan = await createOpencode(host).scan(contextFor(`${folder}/data`, { now: () => now }));
      return stateIn(registryOf(scan, now), id);
    });

  test('the key’s truth from its tables: stopped', async () => {
    const state = await stateWith(tables?.session_message ?? [], 'dead');
    score.row('v2-api db.jsonl:2', state, 'stopped', AS_ONE);
    expect(state).toBe('stopped');
  });

  test('and its prompt without an answer is an open turn', async () => {
    const prompt = (tables?.session_message ?? []).filter((row) => row['type'] === 'user');
    expect(await stateWith(prompt, 'alive')).toBe('running');
    expect(await stateWith(prompt, 'dead')).toBe('stopped');
  });
});

describe('what the program’s own commands print', () => {
  test('`opencode export` gives messages that end as completed (cli-export)', () => {
    const exported = JSON.parse(text('cli-export', 'stdout.json')) as { messages: readonly unknown[] };
    const { turn } = tailOf(exported.messages);
    expect(turn?.end?.outcome).toBe('completed');
    if (!turn) throw new Error('no turn');
    expect(turnClaim(turn, 'unknown', 'export', turn.lastWriteAt).says).toEqual({
      kind: 'rested',
      outcome: 'completed',
    });
  });
});
