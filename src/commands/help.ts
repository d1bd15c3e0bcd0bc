import type { ArgDef, ArgsDef } from 'citty';
import { COMMON_ARGS, type Command } from './command.ts';
import { paint, type Style } from './output/style.ts';

const PROGRAM = 'shadowob-connector';

/** The list of commands, for `--help` without a command. */
export function overviewHelp(commands: readonly Command[], style: Style): string {
  const shown = commands.filter((command) => command.hidden !== true && command.name !== '');
  return [
    `${paint(style, 'bold', PROGRAM)} knows what every coding agent on this computer is doing.`,
    '',
    heading(style, 'Usage'),
    `  ${PROGRAM}                       who works, who is done, who waits for you`,
    `  ${PROGRAM} <command> [options]`,
    '',
    heading(style, 'Commands'),
    ...columns(shown.map((command) => [command.name, command.summary])),
    '',
    heading(style, 'Options'),
    ...columns([
      ['--json', 'one JSON document on stdout, errors too'],
      ['--help, -h', 'help; also after a command'],
      ['--version, -V', 'the version'],
    ]),
    '',
    heading(style, 'Examples'),
    ...columns([
      [PROGRAM, 'the overview'],
      [`${PROGRAM} session-list --state waiting`, 'what waits for a yes'],
      [`${PROGRAM} session-why 5c67492c`, 'why a session is said to be in its state'],
      [`${PROGRAM} runtime-watch`, 'a panel that keeps itself up to date'],
      [`${PROGRAM} session-send 5c67492c --message "Go on" --wait`, 'send a message and see its answer'],
      [`${PROGRAM} session-approve`, 'what waits for your yes, and how to say it'],
    ]),
    '',
    'Exit codes: 0 done, 20-24 wrong input, 30-31 network, 40-46 a runtime can’t or didn’t, 50-51 configuration and hooks, 60 daemon.',
    '',
  ].join('\n');
}

/** The help of one command. */
export function commandHelp(command: Command, style: Style): string {
  const flags = Object.entries({ ...command.args, ...COMMON_ARGS } as ArgsDef).filter(
    ([, def]) => def.type !== 'positional',
  );
  const places = Object.entries(command.args).filter(([, def]) => def.type === 'positional');
  const usage = places.map(([name, def]) => (def.required ? `<${name}>` : `[${name}]`)).join(' ');
  return [
    `${PROGRAM} ${command.name}: ${command.summary}`,
    '',
    heading(style, 'Usage'),
    `  ${[PROGRAM, command.name, usage, '[options]'].filter(Boolean).join(' ')}`,
    '',
    ...wrap(command.details, 100),
    '',
    ...(places.length > 0
      ? [
          heading(style, 'Arguments'),
          ...columns(places.map(([name, def]) => [`<${name}>`, def.description ?? ''])),
          '',
        ]
      : []),
    heading(style, 'Options'),
    ...columns(flags.map(([name, def]) => [flagText(name, def), def.description ?? ''])),
    '',
    heading(style, 'Examples'),
    ...command.examples.flatMap((example) => [
      `  ${PROGRAM} ${example.command}`.trimEnd(),
      `      ${example.says}`,
    ]),
    '',
  ].join('\n');
}

function flagText(name: string, def: ArgDef): string {
  return def.type === 'boolean' ? `--${name}` : `--${name} <${def.valueHint ?? 'value'}>`;
}

function heading(style: Style, text: string): string {
  return paint(style, 'bold', text);
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const left = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(left)}  ${text}`.trimEnd());
}

function wrap(text: string, columnsWide: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + word.length < columnsWide)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}
