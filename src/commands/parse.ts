import type { ArgDef, ArgsDef, ParsedArgs } from 'citty';
import { ConnectorError } from '../runtime/errors.ts';
import { COMMON_ARGS, type Command } from './command.ts';
import { nearest } from './suggest.ts';

/** What the words of a command line mean, one after another. */
interface Reading {
  readonly values: Record<string, string | boolean>;
  readonly positionals: string[];
}

/**
 * Reads a command's arguments strictly: an unknown flag, a flag without its value and a word too many are
 * refused by name (the existing connector took the next flag as the value and ignored the unknown). Declarations
 * are citty's; its parser is not used, since it can't refuse, and `node:util` below it costs 7 ms of every start.
 *
 * @throws ConnectorError `usage`
 */
export function parseCommandArgs<Args extends ArgsDef>(
  command: Command<Args>,
  argv: readonly string[],
): ParsedArgs<Args> {
  const defs: ArgsDef = { ...command.args, ...COMMON_ARGS };
  // The overview has no name of its own.
  const name = command.name || 'shadowob-connector';
  const next = `See: ${['shadowob-connector', command.name, '--help'].filter((word) => word !== '').join(' ')}`;
  const { values, positionals } = readWords(defs, argv, next);
  const places = Object.entries(defs).filter(([, def]) => def.type === 'positional');
  if (positionals.length > places.length) {
    throw new ConnectorError(
      'usage',
      `${name} does not take "${positionals[places.length] ?? ''}"`,
      command.name === '' ? `A command comes before its options. ${next}` : next,
    );
  }
  const missing = places.slice(positionals.length).find(([, def]) => def.required === true);
  if (missing) throw new ConnectorError('usage', `${name} needs ${missing[0].toUpperCase()}`, next);
  for (const [i, [name]] of places.entries()) {
    const word = positionals[i];
    if (word !== undefined) values[name] = word;
  }
  // Every value was checked against the declaration that its type comes from.
  return { _: positionals, ...values } as unknown as ParsedArgs<Args>;
}

function readWords(defs: ArgsDef, argv: readonly string[], next: string): Reading {
  const reading: Reading = { values: {}, positionals: [] };
  for (let i = 0; i < argv.length; i += 1) {
    const token = argv[i] ?? '';
    if (token === '--') {
      reading.positionals.push(...argv.slice(i + 1));
      break;
    }
    if (!token.startsWith('-') || token === '-') {
      reading.positionals.push(token);
      continue;
    }
    const [flag = '', inline] = splitFlag(token);
    const found = findFlag(defs, flag);
    if (!found) throw unknownFlag(defs, flag, next);
    const [name, def] = found;
    if (def.type === 'boolean') {
      reading.values[name] = inline === undefined ? !flag.startsWith('--no-') : inline !== 'false';
      continue;
    }
    const value = inline ?? argv[i + 1];
    if (inline === undefined) i += 1;
    const swallowsFlag =
      inline === undefined && value !== undefined && findFlag(defs, splitFlag(value)[0]) !== undefined;
    if (value === undefined || value === '' || swallowsFlag) {
      throw new ConnectorError('usage', `${flag} needs a value`, next);
    }
    reading.values[name] ??= value;
  }
  return reading;
}

function splitFlag(token: string): [string, string | undefined] {
  const at = token.startsWith('--') ? token.indexOf('=') : -1;
  return at < 0 ? [token, undefined] : [token.slice(0, at), token.slice(at + 1)];
}

function findFlag(defs: ArgsDef, token: string): [string, ArgDef] | undefined {
  return Object.entries(defs).find(([name, def]) => {
    if (def.type === 'positional') return false;
    const aliases = 'alias' in def && def.alias ? [def.alias].flat() : [];
    if (token === `--${name}` || aliases.some((alias) => token === `-${alias}`)) return true;
    return def.type === 'boolean' && token === `--no-${name}`;
  });
}

function unknownFlag(defs: ArgsDef, name: string, next: string): ConnectorError {
  const known = Object.entries(defs)
    .filter(([, def]) => def.type !== 'positional')
    .map(([flag]) => `--${flag}`);
  const hint = nearest(name, known);
  return new ConnectorError(
    'usage',
    `there is no option ${name}${hint ? `; did you mean ${hint}?` : ''}`,
    next,
  );
}
