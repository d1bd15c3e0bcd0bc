/** An OpenCode 1.18 database: the tables that hold sessions, and the indexes that its own queries use. */
import { Database } from 'bun:sqlite';
import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { BENCH_NOW, type Generated } from './claude.ts';
import { createRandom, prose, type Random, uuid } from './random.ts';

const HOUR = 60 * 60 * 1000;

export interface OpenCodeOptions {
  readonly sessions?: number;
  /** Messages in each session, half of them answers with three parts each. */
  readonly messages?: number;
  readonly seed?: number;
}

const SCHEMA = [
  `CREATE TABLE project (id text PRIMARY KEY, worktree text NOT NULL, vcs text, name text, icon_url text,
    icon_url_override text, icon_color text, time_created integer NOT NULL, time_updated integer NOT NULL,
    time_initialized integer, sandboxes text NOT NULL, commands text)`,
  `CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, workspace_id text, parent_id text,
    slug text NOT NULL, directory text NOT NULL, path text, title text NOT NULL, version text NOT NULL,
    share_url text, summary_additions integer, summary_deletions integer, summary_files integer,
    summary_diffs text, metadata text, cost real DEFAULT 0 NOT NULL, tokens_input integer DEFAULT 0 NOT NULL,
    tokens_output integer DEFAULT 0 NOT NULL, tokens_reasoning integer DEFAULT 0 NOT NULL,
    tokens_cache_read integer DEFAULT 0 NOT NULL, tokens_cache_write integer DEFAULT 0 NOT NULL, revert text,
    permission text, agent text, model text, time_created integer NOT NULL, time_updated integer NOT NULL,
    time_compacting integer, time_archived integer)`,
  `CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
    time_updated integer NOT NULL, data text NOT NULL)`,
  `CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
    time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL)`,
  'CREATE TABLE event_sequence (aggregate_id text PRIMARY KEY, seq integer NOT NULL, owner_id text)',
  `CREATE TABLE event (id text PRIMARY KEY, aggregate_id text NOT NULL, seq integer NOT NULL, type text NOT NULL,
    data text NOT NULL)`,
  `CREATE TABLE todo (session_id text NOT NULL, content text NOT NULL, status text NOT NULL, priority text NOT NULL,
    position integer NOT NULL, time_created integer NOT NULL, time_updated integer NOT NULL)`,
  'CREATE INDEX message_session_time_created_id_idx ON message (session_id, time_created, id)',
  'CREATE INDEX part_message_id_id_idx ON part (message_id, id)',
  'CREATE INDEX part_session_idx ON part (session_id)',
  'CREATE INDEX session_project_idx ON session (project_id)',
  'CREATE INDEX session_parent_idx ON session (parent_id)',
];

/** Writes `<home>/.local/share/opencode/opencode.db` in WAL mode, closed. */
export function generateOpenCode(home: string, options: OpenCodeOptions = {}): Generated {
  const random = createRandom(options.seed ?? 21);
  const folder = join(home, '.local', 'share', 'opencode');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, 'opencode.db');
  const database = new Database(path, { create: true });
  database.run('PRAGMA journal_mode = WAL');
  for (const statement of SCHEMA) database.run(statement);
  database.transaction(() => {
    const project = uuid(random).replaceAll('-', '');
    database.run(
      'INSERT INTO project (id, worktree, vcs, time_created, time_updated, sandboxes) VALUES (?, ?, ?, ?, ?, ?)',
      [...[project, '/home/dev/acme-app', 'git'], ...[BENCH_NOW, BENCH_NOW, '[]']],
    );
    for (let n = 0; n < (options.sessions ?? 200); n += 1)
      writeSession(database, project, n, options.messages ?? 20, random);
  })();
  database.run('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
  return { files: 1, bytes: statSync(path).size };
}

function writeSession(
  database: Database,
  project: string,
  n: number,
  messages: number,
  random: Random,
): void {
  const id = `ses_${uuid(random).replaceAll('-', '').slice(0, 26)}`;
  const created = BENCH_NOW - Math.floor(random() * 2000) * HOUR;
  database.run(
    `INSERT INTO session (id, project_id, slug, directory, path, title, version, agent, model, time_created, time_updated)
     VALUES (?, ?, ?, ?, '', ?, '1.18.33', 'build', ?, ?, ?)`,
    [
      ...[id, project, `sunny-canyon-${n}`, '/home/dev/acme-app', `Session ${n}: ${prose(random, 30)}`],
      ...[
        JSON.stringify({ id: 'mock-1', providerID: 'mock', variant: 'default' }),
        created,
        created + messages * 1000,
      ],
    ],
  );
  for (let m = 0; m < messages; m += 1) writeMessage(database, id, created + m * 1000, m % 2 === 0, random);
  database.run('INSERT INTO event_sequence (aggregate_id, seq) VALUES (?, ?)', [id, messages * 4]);
}

function writeMessage(
  database: Database,
  session: string,
  at: number,
  fromUser: boolean,
  random: Random,
): void {
  const id = `msg_${at.toString(16)}${uuid(random).slice(0, 13)}`;
  const user = {
    role: 'user',
    time: { created: at },
    agent: 'build',
    model: { providerID: 'mock', modelID: 'mock-1' },
  };
  const assistant = {
    ...{ role: 'assistant', time: { created: at, completed: at + 900 }, finish: 'stop', mode: 'build' },
    ...{ modelID: 'mock-1', providerID: 'mock', cost: 0, tokens: { input: 10, output: 20 } },
  };
  database.run('INSERT INTO message VALUES (?, ?, ?, ?, ?)', [
    ...[id, session, at, at + 900],
    JSON.stringify(fromUser ? user : assistant),
  ]);
  const texts = fromUser
    ? [prose(random, 80)]
    : [prose(random, 200), prose(random, 1500), prose(random, 300)];
  for (const [index, text] of texts.entries()) {
    database.run('INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)', [
      ...[`prt_${at.toString(16)}${uuid(random).slice(0, 8)}${index}`, id, session, at, at],
      JSON.stringify({ type: 'text', text, time: { start: at, end: at + 10 } }),
    ]);
  }
}
