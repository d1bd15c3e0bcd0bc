import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readBounded, writePrivate } from '../../../runtime/files/private-file.ts';
import { checkProcess, findProcess } from '../../../runtime/process/identity.ts';
import { killTree } from '../../../runtime/process/kill-tree.ts';
import type { ProcessHost, ProcessIdentity } from '../../../runtime/process/types.ts';

/**
 * What a wrapper that was killed has left. Its terminal goes on then, on the server that it needs; when that terminal
 * has gone, too, the next wrapper ends the server. A pid counts with its start alone.
 */

const identity = z.object({ pid: z.number().int().gt(1), startToken: z.string().min(1) });
const record = z.object({ version: z.literal(1), server: identity, users: z.array(identity).min(1) });

const NAME = /^codex-wrap-\d+\.json$/;
const RECORD_BYTES = 4 * 1024;

/** Where the record of a wrapper lies. */
export function recordPath(connectorHome: string, pid: number): string {
  return join(connectorHome, `codex-wrap-${pid}.json`);
}

/** Writes down which server the wrapper has started, and for whom. Without all their starts nothing is written. */
export async function writeRecord(
  path: string,
  server: number,
  users: readonly number[],
  host: ProcessHost,
): Promise<void> {
  const found = await Promise.all([server, ...users].map((pid) => findProcess(pid, host)));
  const [first, ...others] = found.map((one) => one && { pid: one.pid, startToken: one.startToken });
  const text = JSON.stringify({ version: 1, server: first, users: others });
  if (record.safeParse(JSON.parse(text)).success) writePrivate(path, `${text}\n`, { durable: false });
}

/** Forgets a server that has ended. */
export function forgetRecord(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // A folder that may no longer be written: the next wrapper finds a record of processes that are gone.
  }
}

/** Ends the servers that nobody uses any more. Never throws. */
export async function endLeftovers(connectorHome: string, host: ProcessHost): Promise<void> {
  for (const name of namesIn(connectorHome).filter((one) => NAME.test(one))) {
    const path = join(connectorHome, name);
    const left = readRecord(path);
    if (left && (await mayBeUsed(left.users, host))) continue;
    const runs = left && (await checkProcess(left.server, host)) === 'same';
    if (runs) await killTree(left.server, {}, host);
    forgetRecord(path);
    forgetRecord(path.replace(/\.json$/, '.sock'));
  }
}

function readRecord(path: string): z.infer<typeof record> | undefined {
  const read = readBounded(path, RECORD_BYTES);
  if (read.kind !== 'read') return undefined;
  try {
    return record.safeParse(JSON.parse(read.bytes.toString('utf8'))).data;
  } catch {
    // No JSON: no record of ours, under a name that only we give.
    return undefined;
  }
}

/** One whose start can't be learnt may be it. */
async function mayBeUsed(users: readonly ProcessIdentity[], host: ProcessHost): Promise<boolean> {
  const checks = await Promise.all(users.map((user) => checkProcess(user, host)));
  return checks.some((check) => check !== 'gone');
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // No connector home yet.
    return [];
  }
}
