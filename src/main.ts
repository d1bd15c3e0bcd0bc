/** The entry. `--version` loads nothing else; everything else is imported on demand. */
import { versionText } from './version.ts';

const args = process.argv.slice(2);

if (args[0] === '--version' || args[0] === '-V') {
  process.stdout.write(versionText());
} else {
  const { runCli } = await import('./commands/cli.ts');
  process.exitCode = await runCli(args);
}
