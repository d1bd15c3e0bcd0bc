import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** Recordings of the real Codex CLI: 0.171.0, and 0.104.0 in `legacy-0.104-*`. */
export const RECORDINGS = resolve(import.meta.dir, '../../recordings/codex');

/** One row of a scenario's table: what happened, and the right state after it. */
export interface TableRow {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly what: string;
  readonly state: string;
  /** Last characters of the thread's id, where the scenario has several. */
  readonly thread?: string;
  readonly file?: string;
  readonly line?: number;
}

/** One line of `answer-key.jsonl`. */
export interface KeyLine {
  readonly file: string;
  readonly line: number;
  readonly record: string;
  readonly state: string;
  readonly rollout_only?: string;
}

type Json = Readonly<Record<string, unknown>>;

export interface Recording {
  readonly name: string;
  readonly folder: string;
  /** Recorded file names with the paths that they had under the home folder. */
  readonly paths: ReadonlyMap<string, string>;
  readonly table: readonly TableRow[];
  readonly key: readonly KeyLine[];
  readonly hooks: readonly { readonly at: number; readonly payload: Json }[];
  readonly server: readonly { readonly at: number; readonly kind: string; readonly body: Json }[];
  /** Which threads' locks were seen held, and by whom, from this moment. */
  readonly locks: readonly { readonly at: number; readonly held: ReadonlyMap<string, number> }[];
}

export function scenarios(): readonly string[] {
  return readdirSync(RECORDINGS).sort();
}

export function linesOf(recording: Pick<Recording, 'folder'>, file: string): readonly string[] {
  return readFileSync(join(recording.folder, file), 'utf8').split('\n').slice(0, -1);
}

export function loadRecording(name: string): Recording {
  const folder = join(RECORDINGS, name);
  const files = readdirSync(folder).filter((file) => /^rollout.*\.jsonl$/.test(file));
  return {
    name,
    folder,
    paths: pathsOf(folder, files),
    table: jsonLines(folder, 'table.jsonl').map((row) => ({
      ...(row as unknown as TableRow),
      at: timeOf(row),
    })),
    key: jsonLines(folder, 'answer-key.jsonl') as unknown as readonly KeyLine[],
    hooks: jsonLines(folder, 'hooks.jsonl').map((hook) => ({
      at: timeOf(hook),
      payload: hook['payload'] as Json,
    })),
    server: jsonLines(folder, 'app-server.jsonl').map(serverLine),
    locks: jsonLines(folder, 'timeline.jsonl').flatMap(lockLine),
  };
}

function pathsOf(folder: string, files: readonly string[]): ReadonlyMap<string, string> {
  const meta = JSON.parse(readFileSync(join(folder, 'meta.json'), 'utf8')) as { files: string[] };
  return new Map(
    files.map((file) => {
      const path = meta.files.find((one) => file === 'rollout.jsonl' || one.endsWith(file));
      if (path === undefined) throw new Error(`${folder}: no path for ${file}`);
      return [file, path.replace(/^.*?\.codex\//, '')];
    }),
  );
}

function jsonLines(folder: string, file: string): readonly Json[] {
  const path = join(folder, file);
  if (!existsSync(path)) return [];
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Json);
}

function timeOf(line: Json): number {
  return Date.parse(String(line['at']));
}

function serverLine(line: Json) {
  const body = (line['msg'] ?? { state: line['state'] }) as Json;
  return { at: timeOf(line), kind: String(line['kind']), body };
}

function lockLine(line: Json) {
  const locks = line['locks'] as Readonly<Record<string, string>> | undefined;
  if (!locks) return [];
  const held = Object.entries(locks).map(([file, text]) => {
    const pid = /pid=(\d+)/.exec(text)?.[1];
    return [file.replace('.lock', ''), Number(pid)] as const;
  });
  return [{ at: timeOf(line), held: new Map(held) }];
}
