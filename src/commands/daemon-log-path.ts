import { join } from 'node:path';

/** Name of the log in the connector home (S-904). */
export const LOG_NAME = 'daemon.log';

/** The path of the log of a connector home. */
export function logPathIn(home: string): string {
  return join(home, LOG_NAME);
}
