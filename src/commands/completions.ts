import { RootCommand } from '@bomb.sh/tab';
import type { ArgsDef } from 'citty';
import { CATALOG } from '../adapters/catalog.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { PUBLIC_STATES } from '../runtime/session/project.ts';
import type { Session } from '../runtime/session/session.ts';
import { type Answer, COMMON_ARGS, type Command, defineCommand } from './command.ts';
import { bashScript } from './completions-bash.ts';
import { shortIds } from './resolve.ts';

const SHELLS = ['bash', 'zsh', 'fish', 'powershell'] as const;
const PROGRAM = 'shadowob-connector';

export const completions = defineCommand({
  name: 'completions',
  summary: 'print a completion script for your shell',
  details:
    'Prints a script that teaches your shell the commands, options, runtimes, states and session ids. Load it from your shell’s start file; nothing is installed by this command.',
  args: { shell: { type: 'positional', required: true, description: SHELLS.join(', ') } },
  examples: [
    {
      command: 'completions bash > ~/.local/share/bash-completion/completions/shadowob-connector',
      says: 'for bash',
    },
    { command: 'completions zsh > ~/.zfunc/_shadowob-connector', says: 'for zsh, with ~/.zfunc in fpath' },
    { command: 'completions fish > ~/.config/fish/completions/shadowob-connector.fish', says: 'for fish' },
  ],
  async run(args): Promise<Answer> {
    const shell = SHELLS.find((known) => known === args.shell);
    if (!shell) {
      throw new ConnectorError(
        'badValue',
        `there are no completions for "${args.shell}"`,
        `The shells are ${SHELLS.join(', ')}.`,
      );
    }
    if (shell === 'bash') return { kind: 'verbatim', text: bashScript(PROGRAM) };
    return { kind: 'verbatim', text: capture(() => new RootCommand().setup(PROGRAM, PROGRAM, shell)) };
  },
});

/**
 * Answers a shell that asks what may follow (`complete -- <words>`, as the scripts call it).
 *
 * @param sessions gives the sessions whose ids may be offered; asked only where an id can stand
 */
export async function answerCompletion(
  words: readonly string[],
  commands: readonly Command[],
  sessions: () => Promise<readonly Session[]>,
): Promise<string> {
  const root = new RootCommand();
  const wantsId = commands.some((command) => command.name === words[0] && 'id' in command.args);
  const known = wantsId ? await sessions() : [];
  const idOf = shortIds(known);
  for (const command of commands) {
    if (command.name === '' || command.hidden) continue;
    const entry = root.command(command.name, command.summary);
    const defs: ArgsDef = { ...command.args, ...COMMON_ARGS };
    for (const [name, def] of Object.entries(defs)) {
      if (def.type === 'positional') {
        entry.argument(name, (complete) => {
          if (name === 'id')
            for (const session of known) complete(idOf(session.ref), session.facts.title ?? '');
          if (name === 'shell') for (const shell of SHELLS) complete(shell, '');
        });
        continue;
      }
      if (def.type === 'boolean') entry.option(name, def.description ?? '');
      else entry.option(name, def.description ?? '', (complete) => offerValues(name, complete));
    }
  }
  return capture(() => root.parse([...words]));
}

function offerValues(flag: string, complete: (value: string, description: string) => void): void {
  if (flag === 'runtime') for (const entry of CATALOG) complete(entry.id, entry.label);
  if (flag === 'state') for (const state of ['waiting', 'active', ...PUBLIC_STATES]) complete(state, '');
  if (flag === 'since') for (const span of ['30m', '2h', '1d', '7d']) complete(span, '');
}

/** The library prints with `console.log`; here its lines become the answer, printed where all answers are. */
function capture(run: () => void): string {
  const lines: string[] = [];
  const print = console.log;
  console.log = (...parts: unknown[]) => void lines.push(parts.join(' '));
  try {
    run();
  } finally {
    console.log = print;
  }
  return `${lines.join('\n')}\n`;
}
