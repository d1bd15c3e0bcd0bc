/**
 * One thing that we put into a configuration file: how it comes in, and how it goes.
 *
 * Both are functions of what the file says, so installing twice, upgrading from another path, and removing
 * what an older version left are the same two calls.
 */
import type { Data } from './data.ts';
import type { FormatId } from './document.ts';
import type { Operation } from './operation.ts';

export interface Wiring {
  /** Its name in records, such as `claude-hooks`. */
  readonly id: string;
  readonly format: FormatId;
  /** What is missing or stale; nothing if all of it is there as it should be (H5: N runs are one). */
  install(data: Data): readonly Operation[];
  /**
   * What takes all of ours away, and only ours (H4). Containers that become empty by it need no care: the core
   * takes away those that it made.
   */
  remove(data: Data): readonly Operation[];
  /**
   * What of the data counts when an earlier text is compared with what removal means; all of it by default. Where
   * removal also takes away what may have been there before us (S-823: empty groups at the end), the text that the
   * file had is still preferred.
   */
  settled?(data: Data): Data;
}
