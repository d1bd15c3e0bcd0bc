/**
 * Generates one data set by hand, to look at or to profile with:
 *
 *   bun bench/generate/index.ts claude|crowded|many|sparse|codex|opencode HOME [COUNT]
 *
 * COUNT is the number of files, threads or sessions; for `sparse` the size in bytes.
 */
import {
  type Generated,
  generateClaude,
  generateCrowded,
  generateManySessions,
  generateSparse,
} from './claude.ts';
import { generateCodex } from './codex.ts';
import { generateOpenCode } from './opencode.ts';

const MAKERS: Record<string, (home: string, count: number | undefined) => Generated> = {
  claude: (home, files) => generateClaude(home, files === undefined ? {} : { files, bytes: files * 377_500 }),
  crowded: generateCrowded,
  many: generateManySessions,
  sparse: (home, size) => generateSparse(home, size ?? 20 * 1024 ** 3),
  codex: (home, threads) =>
    generateCodex(home, { packedEvery: 50, ...(threads === undefined ? {} : { threads }) }),
  opencode: (home, sessions) => generateOpenCode(home, sessions === undefined ? {} : { sessions }),
};

const [what = '', home, count] = process.argv.slice(2);
const make = MAKERS[what];
if (make === undefined || home === undefined) {
  console.error(`say one of ${Object.keys(MAKERS).join(', ')}, and a folder that stands for the home`);
  process.exit(20);
}
const made = make(home, count === undefined ? undefined : Number(count));
console.log(`${made.files} files, ${(made.bytes / 1e6).toFixed(1)} MB`);
