import { type ArgsDef, type ParsedArgs, parseArgs } from 'citty';
import { ConnectorError } from '../runtime/errors.ts';
import { COMMON_ARGS, type Command } from './command.ts';
import { nearest } from './suggest.ts';

/**
 * Reads a command's arguments strictly: an unknown flag, a flag without its value and a word too many are
 * refused by name (the existing connector took the next flag as the value and ignored the unknown).
 *
 * @throws ConnectorError `usage`
 */
export function parseCommandArgs<Args extends ArgsDef>(
  command: Command<Args>,
  argv: readonly string[],
): ParsedArgs<Args> {
  const defs: ArgsDef = { ...command.args, ...COMMON_ARGS };
  const next = `See: shadowob-connector ${command.name} --help`;
  const positionals = checkTokens(defs, argv, next);
  const places = Object.values(defs).filter((def) => def.type === 'positional');
  if (positionals.length > places.length) {
    throw new ConnectorError(
      'usage',
      `${command.name} does not take "${positionals[places.length] ?? ''}"`,
      next,
    );
  }
  const missing = Object.entries(defs)
    .filter(([, def]) => def.type === 'positional')
    .slice(positionals.length)
    .find(([, def]) => def.required === true);
  if (missing) throw new ConnectorError('usage', `${command.name} needs ${missing[0].toUpperCase()}`, next);
  return parseArgs<Args>([...argv], defs);
}

/** Checks flags one by one and gives the words that are no flags. */
function checkTokens(defs: ArgsDef, argv: readonly string[], next: string): string[] {
  const positionals: string[] = [];
  for (let i = 0; i < argv.length; i += 1) {
    const token = argv[i] ?? '';
    if (token === '--') return [...positionals, ...argv.slice(i + 1)];
    if (!token.startsWith('-') || token === '-') {
      positionals.push(token);
      continue;
    }
    const [name = '', inline] = splitFlag(token);
    const def = findFlag(defs, name);
    if (!def) throw unknownFlag(defs, name, next);
    if (def.type === 'boolean') continue;
    const value = inline ?? argv[i + 1];
    if (inline === undefined) i += 1;
    const swallowsFlag =
      inline === undefined && value !== undefined && findFlag(defs, splitFlag(value)[0]) !== undefined;
    if (value === undefined || value === '' || swallowsFlag) {
      throw new ConnectorError('usage', `${name} needs a value`, next);
    }
  }
  return positionals;
}

function splitFlag(token: string): [string, string | undefined] {
  const at = token.startsWith('--') ? token.indexOf('=') : -1;
  return at < 0 ? [token, undefined] : [token.slice(0, at), token.slice(at + 1)];
}

function findFlag(defs: ArgsDef, token: string) {
  return Object.entries(defs).find(([name, def]) => {
    if (def.type === 'positional') return false;
    const aliases = 'alias' in def && def.alias ? [def.alias].flat() : [];
    if (token === `--${name}` || aliases.some((alias) => token === `-${alias}`)) return true;
    return def.type === 'boolean' && token === `--no-${name}`;
  })?.[1];
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
