/**
 * Lists and stats every transcript below `~/.claude/projects` and does nothing else: the reference of R-27 for a
 * list with nothing known.
 */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

const projects = join(process.env['HOME'] ?? '', '.claude', 'projects');
let files = 0;
let bytes = 0;
for (const project of readdirSync(projects)) {
  for (const name of readdirSync(join(projects, project))) {
    if (!name.endsWith('.jsonl')) continue;
    bytes += statSync(join(projects, project, name)).size;
    files += 1;
  }
}
process.stdout.write(`${files} files, ${bytes} bytes\n`);
