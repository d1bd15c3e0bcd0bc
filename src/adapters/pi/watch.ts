import { basename } from 'node:path';
import type { FeedSink, FeedWatch } from '../../runtime/feed.ts';
import { watchFolders } from '../../runtime/files/watch.ts';
import type { AdapterContext } from '../adapter.ts';
import { sessionIdOf } from './discover.ts';
import { piHome } from './homes.ts';

/** Watches the session folders: folders, not files, and a slow poll as the net. */
export async function watchPi(context: AdapterContext, sink: FeedSink): Promise<FeedWatch> {
  const home = piHome(context);
  const roots = [
    { path: home.sessions, depth: 1 },
    ...(home.flat === undefined ? [] : [{ path: home.flat, depth: 0 }]),
  ];
  const watch = watchFolders(roots, {
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

/** Session files, and names without an extension: a new folder. */
function matters(path: string): boolean {
  const name = basename(path);
  return sessionIdOf(name) !== undefined || !/\.[a-z]+$/i.test(name);
}
