/**
 * The entry. Three paths load next to nothing: `hook`, which runs inside of other programs' turns (R-24), `status-line`,
 * which runs in prompts and bars, and `--version`. The wrappers have a path of their own, since their
 * output is another program's (S-702). Everything else is imported on demand.
 */
import { writeSync } from 'node:fs';
import { versionText } from './version.ts';

const args = process.argv.slice(2);

if (args[0] === 'hook') {
  const { runHook } = await import('./commands/hook.ts');
  await runHook(args.slice(1));
} else if (args[0] === '--version' || args[0] === '-V') {
  // `process.stdout` takes 5 ms when it is first touched, a write to the descriptor takes none.
  writeSync(1, versionText());
} else if (args[0] === 'status-line' && (await shortStatusLine(args.slice(1)))) {
  // Printed: the short way took all of its words.
} else if ((args[0] === 'claude-wrap' || args[0] === 'codex-wrap') && !asksForHelp(args)) {
  const { runWrap } = await import('./commands/wrap.ts');
  await runWrap(args[0], args.slice(1));
} else {
  const { runCli } = await import('./commands/cli.ts');
  // All that it had to say is written by now: a timer or socket that is left over must not keep a user's prompt away.
  process.exit(await runCli(args));
}

/** False for `--help`, `--json` and whatever else the command itself has to read. */
async function shortStatusLine(words: readonly string[]): Promise<boolean> {
  const { runStatusLine } = await import('./commands/output/status-line.ts');
  return runStatusLine(words);
}

/** Behind `--` the words are another program's. */
function asksForHelp(words: readonly string[]): boolean {
  const end = words.indexOf('--');
  return words.slice(0, end < 0 ? words.length : end).some((word) => word === '--help' || word === '-h');
}
