import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createEditor } from '../../../src/install/edit/editor.ts';
import type { HooksContext, HooksPlan, RuntimeProgram } from '../../../src/install/hooks/integration.ts';
import { run } from '../../../src/runtime/process/spawn.ts';

export const P1 = '/one/bin/shadowob-connector';
export const P2 = '/two/shadowob-connector-linux-x64';

/** A home folder, and what integrations see of it. */
export interface Stage {
  readonly home: string;
  context(options?: Partial<HooksContext>): HooksContext;
  /** Versions of the programs that are found. */
  found(...versions: (string | undefined)[]): void;
  write(path: string, text: string): void;
  /** `undefined`: there is no such file. */
  read(path: string): string | undefined;
  [Symbol.dispose](): void;
}

export function stage(): Stage {
  const root = mkdtempSync(join(tmpdir(), 'hooks-'));
  const home = join(root, 'home');
  mkdirSync(home);
  const state: { programs: readonly RuntimeProgram[]; at: number } = { programs: [], at: 1_796_000_000_000 };
  return {
    home,
    context: (options = {}) => ({
      env: {},
      home,
      cwd: home,
      platform: 'linux',
      connectorHome: join(root, 'connector'),
      program: P1,
      editor: createEditor({
        home: join(root, 'connector'),
        now: () => {
          state.at += 1_000;
          return new Date(state.at);
        },
      }),
      run,
      now: () => state.at,
      log: { debug() {}, warn() {} },
      programs: async () => state.programs,
      options: {},
      ...options,
    }),
    found(...versions) {
      state.programs = versions.map((version, index) => ({
        path: `/programs/${index}`,
        env: {},
        ...(version === undefined ? {} : { version }),
      }));
    },
    write(path, text) {
      mkdirSync(dirname(join(home, path)), { recursive: true });
      writeFileSync(join(home, path), text);
    },
    read(path) {
      return existsSync(join(home, path)) ? readFileSync(join(home, path), 'utf8') : undefined;
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  };
}

/** Does what was planned; what it wrote, and what was said. Throws what was refused. */
export function carryOut(plan: HooksPlan): { readonly kinds: readonly string[]; readonly said: string } {
  if (plan.kind === 'refused') throw new Error(plan.message);
  if (plan.kind === 'absent') return { kinds: [], said: plan.message };
  if (plan.kind === 'nothing') return { kinds: [], said: plan.notes.join('\n') };
  const kinds = plan.changes.map((change) => change.commit().kind);
  return { kinds, said: [...plan.notes, ...plan.afterwards].join('\n') };
}
