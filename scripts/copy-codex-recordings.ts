/**
 * Copies recordings of the real Codex CLI into `test/recordings/codex`, and makes `table.jsonl` of the merged table in
 * each README: one line a row, with the right state after it. Run once for each new set of recordings:
 *
 *     bun scripts/copy-codex-recordings.ts <folder with one folder per scenario>
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';

const TARGET = resolve(import.meta.dir, '../test/recordings/codex');
const KEPT =
  /^(rollout.*\.jsonl(\.zst)?|hooks\.jsonl|app-server\.jsonl|timeline\.jsonl|answer-key\.jsonl|meta\.json|session_index\.jsonl)$/;

/** One row of a table. `file` and `line` are given for rollout records, `thread` where the row names one. */
interface Row {
  readonly at: string;
  readonly what: string;
  readonly state: string;
  readonly thread?: string;
  readonly file?: string;
  readonly line?: number;
}

const [source] = process.argv.slice(2);
if (source === undefined) throw new Error('usage: bun scripts/copy-codex-recordings.ts <folder>');
for (const scenario of readdirSync(source, { withFileTypes: true })) {
  if (scenario.isDirectory()) copyScenario(join(source, scenario.name), join(TARGET, scenario.name));
}

function copyScenario(from: string, to: string): void {
  const names = readdirSync(from).filter((name) => KEPT.test(name));
  if (!names.some((name) => name.startsWith('rollout'))) return;
  mkdirSync(to, { recursive: true });
  for (const name of names) {
    copyFileSync(join(from, name), join(to, name));
    chmodSync(join(to, name), 0o644);
  }
  const readme = join(from, 'README.md');
  const rows = existsSync(readme) ? tableRows(readFileSync(readme, 'utf8'), names, dateOf(from)) : [];
  if (rows.length > 0)
    writeFileSync(join(to, 'table.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
}

/** The table gives times of day only; all that a scenario did fell on one day. */
function dateOf(from: string): string {
  const key = join(from, 'answer-key.jsonl');
  return existsSync(key) ? (/"at": "(\d{4}-\d{2}-\d{2})T/.exec(readFileSync(key, 'utf8'))?.[1] ?? '') : '';
}

function tableRows(readme: string, files: readonly string[], date: string): Row[] {
  const rollouts = files.filter((name) => name.startsWith('rollout'));
  return readme.split('\n').flatMap((line) => {
    const cells = /^\| (\d{2}:\d{2}:\d{2}\.\d{3}) \| (.*) \| ([^|]*) \|$/.exec(line);
    const [, time, text, state] = cells ?? [];
    if (time === undefined || text === undefined || state === undefined) return [];
    const named = /^\s*(?:`…([0-9a-z]+)` )?(.*)$/.exec(text.replaceAll('\\|', '|'));
    const [, thread, what = ''] = named ?? [];
    const record = /^(?:rollout|…([0-9a-z]+)):(\d+) /.exec(what);
    const file = record ? rolloutNamed(rollouts, record[1]) : undefined;
    return [
      {
        at: `${date}T${time}Z`,
        what,
        state: state.trim(),
        ...(thread ? { thread } : {}),
        ...(file ? { file, line: Number(record?.[2]) } : {}),
      },
    ];
  });
}

/** A file is named by the last characters of its last id. */
function rolloutNamed(rollouts: readonly string[], suffix: string | undefined): string {
  const found =
    suffix === undefined ? rollouts[0] : rollouts.find((name) => name.endsWith(`${suffix}.jsonl`));
  if (found === undefined) throw new Error(`no rollout ends in ${suffix}`);
  return found;
}
