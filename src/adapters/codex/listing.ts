import type { RolloutHead, RolloutPort, RolloutSeen } from '../../runtime/daemon/feeds/ports.ts';
import { isUuid } from '../../runtime/daemon/vocabulary.ts';
import { type FileSystemPort, notAFile, systemFiles, tryStat } from '../../runtime/files/file-system.ts';
import { SESSIONS } from '../../runtime/limits.ts';
import type { AdapterContext } from '../adapter.ts';
import { asFields, objectOf, parseFields, textOf } from './fields.ts';
import { codexHome } from './homes.ts';
import type { CodexHost } from './host.ts';
import { readThreadLocks } from './locks.ts';
import { walkRollouts } from './walk.ts';

/**
 * Lists Codex's rollouts for the daemon's discovery feed, reads their first lines, and their threads' locks without
 * taking one (S-620 … S-623, R-22). A packed rollout stands under its unpacked name, so packing ends nothing.
 */
export function rolloutListing(context: AdapterContext, host: CodexHost): RolloutPort {
  const files = context.files ?? systemFiles;
  const home = codexHome(context);
  return {
    list: () =>
      walkRollouts({ ...home, archived: '' }, files, context.platform).rollouts.map(
        ({ path, stat }): RolloutSeen => ({
          path: path.replace(/\.zst$/, ''),
          size: stat.size,
          mtimeMs: stat.mtimeMs,
        }),
      ),
    head: (path) => readHead(files, path),
    locks() {
      const locks = readThreadLocks(home, files, { ...host, platform: context.platform });
      return (id) => locks.of(id).kind;
    },
  };
}

const STEP = 16 * 1024;
const LF = 10;

function readHead(files: FileSystemPort, path: string): RolloutHead {
  const refused = notAFile(tryStat(files, path));
  // A packed rollout has no file of this name: it is history, and whoever goes on with it unpacks it first.
  if (refused) return refused.kind === 'missing' ? { kind: 'unfinished' } : UNREADABLE;
  try {
    const line = firstLine(files, path);
    return typeof line === 'string' ? headOf(line) : line;
  } catch {
    // Not ours to read, or gone since: never asked again until it is another file.
    return UNREADABLE;
  }
}

const UNREADABLE: RolloutHead = { kind: 'skip', gate: 'unreadable' };

function firstLine(files: FileSystemPort, path: string): string | RolloutHead {
  const fd = files.open(path);
  try {
    const buffer = Buffer.alloc(SESSIONS.rolloutHeadBytes);
    for (let length = 0; ; ) {
      const room = Math.min(STEP, buffer.length - length);
      if (room === 0) return { kind: 'skip', gate: 'too_long' };
      const count = files.read(fd, buffer, length, room, length);
      if (count === 0) return { kind: 'unfinished' };
      const end = buffer.subarray(length, length + count).indexOf(LF);
      if (end >= 0) return buffer.toString('utf8', 0, length + end);
      length += count;
    }
  } finally {
    files.close(fd);
  }
}

/** The first line as S-621 reads it; only a UUID may ever name a lock. */
function headOf(line: string): RolloutHead {
  const record = parseFields(line);
  const payload = objectOf(record, 'payload');
  if (textOf(record, 'type') !== 'session_meta' || !payload) return { kind: 'skip', gate: 'no_meta' };
  const isSubAgent = asFields(payload['source']) ?? textOf(payload, 'thread_source') === 'subagent';
  if (isSubAgent) return { kind: 'skip', gate: 'sub_agent' };
  const id = textOf(payload, 'id') ?? textOf(payload, 'session_id');
  if (id === undefined || !isUuid(id)) return { kind: 'skip', gate: 'no_id' };
  const cwd = textOf(payload, 'cwd');
  return { kind: 'thread', id: id.toLowerCase(), ...(cwd === undefined ? {} : { cwd }) };
}
