import { basename } from 'node:path';
import type { FeedSink, FeedWatch } from '../../runtime/feed.ts';
import { type WatchRoot, watchFolders } from '../../runtime/files/watch.ts';
import type { AdapterContext } from '../adapter.ts';
import { type ClaudeHome, claudeHomes } from './homes.ts';
import { LIVE_FILE_NAME } from './live-file.ts';

/** What of a change matters: transcripts, live files, folders; not the thousands of files of sub-agents. */
const MATTERS = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.jsonl$/i;

/** Watches the folders of all homes: folders, not files, and a slow poll as the net. */
export async function watchClaude(context: AdapterContext, sink: FeedSink): Promise<FeedWatch> {
  const homes = claudeHomes(context.env, context.home);
  const watch = watchFolders(homes.flatMap(rootsOf), {
    onChange(paths, overflow) {
      if (overflow || paths.some(matters)) sink.changed();
    },
    log: (line) => context.log.warn(line),
    ...(context.files ? { files: context.files } : {}),
  });
  return {
    async close() {
      watch.close();
    },
    status: () => watch.words(),
  };
}

function rootsOf(home: ClaudeHome): readonly WatchRoot[] {
  return [
    { path: home.projects, depth: 1 },
    { path: home.sessions, depth: 0 },
    { path: home.jobs, depth: 1 },
  ];
}

/** True for names that a scan would read, and for names without an extension: a new project folder. */
export function matters(path: string): boolean {
  const name = basename(path);
  if (MATTERS.test(name) || LIVE_FILE_NAME.test(name) || name === 'state.json') return true;
  return !/\.[a-z]+$/i.test(name);
}
