import { join } from 'node:path';

/** Name of the file in the connector home. */
export const CONFIG_NAME = 'config.json';

/** The settings file of a connector home. Apart from its reader, which brings the schema library along. */
export function configPathIn(home: string): string {
  return join(home, CONFIG_NAME);
}
