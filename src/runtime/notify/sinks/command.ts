import { basename } from 'node:path';
import { NOTIFY } from '../../limits.ts';
import { scrubbedEnv } from '../../process/scrubbed-env.ts';
import type { CommandRunner, Environment } from '../../process/types.ts';
import { eventOf } from '../notice.ts';
import { DELIVERED, failed, type Sink } from './sink.ts';

export interface CommandSinkOptions {
  readonly argv: readonly string[];
  readonly timeoutMs: number;
  readonly details: boolean;
  readonly env: Environment;
  readonly run: CommandRunner;
}

/**
 * A command of the owner's: the event as one JSON document on stdin. Its own process group, no shell, no marks of a
 * session and none of our secrets in its environment, ended with all that it started when its time is over (K1).
 */
export function commandSink({ argv, timeoutMs, details, env, run }: CommandSinkOptions): Sink {
  return {
    name: 'command',
    words: basename(argv[0] ?? ''),
    async send(notice, signal) {
      const result = await run({
        argv,
        env: scrubbedEnv(env),
        stdin: `${JSON.stringify(eventOf(notice, details))}\n`,
        timeoutMs,
        signal,
        keepBytes: NOTIFY.commandKeepBytes,
      });
      if (result.kind === 'failedToStart') return failed(`could not be started: ${result.reason}`);
      if (result.kind !== 'exited')
        return failed(result.kind === 'timedOut' ? `ended after ${timeoutMs} ms` : 'ended');
      if (result.code === 0) return DELIVERED;
      return failed(result.code === null ? `ended by ${result.signal}` : `left with code ${result.code}`);
    },
  };
}
