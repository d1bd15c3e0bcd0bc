/**
 * Knows our commands among those of others (R-31, S-805): by the program's base name and by its words, never by where
 * it lies (H6). Pure.
 */

/** Whose a command is, by its text alone. */
export type Whose =
  /** `agent`: the word behind `--agent`, if there is one. `bare`: no other word. */
  | { readonly kind: 'ours'; readonly agent: string | undefined; readonly bare: boolean }
  /** It runs our sink in a way of its user's own: with something before it (S-805, S-813). */
  | { readonly kind: 'customised' }
  | { readonly kind: 'foreign' };

const NAME = /^shadowob-connector[\w.-]*$/i;

/** A first word in any of the shells: quoted, escaped by a backslash or a caret, or plain. */
const PROGRAM = String.raw`(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|\^.|[^\s'"\\^;&|<>()])+`;
const COMMAND = new RegExp(String.raw`^(?:&\s+)?(${PROGRAM})(?:\s+(.*))?$`, 's');
const INSIDE = /(?:^|[\s"'`\\/;&|(=])shadowob-connector[\w.-]*["']?\s+hook(?:\s|$)/i;

/** Whether a program of this path would be known again. */
export function isOurProgram(path: string): boolean {
  return NAME.test(path.replace(/["'^]/g, '').split(/[\\/]/).at(-1) ?? '');
}

/** Reads the text of a command. */
export function whose(command: string): Whose {
  const [, program = '', rest = ''] = COMMAND.exec(command.trim()) ?? [];
  const [verb, option, agent, ...more] = rest.split(/\s+/).filter((word) => word !== '');
  if (program !== '' && isOurProgram(program) && verb === 'hook') {
    if (option === undefined) return { kind: 'ours', agent: undefined, bare: true };
    const tagged = option === '--agent' && agent !== undefined && /^[\w-]+$/.test(agent);
    return { kind: 'ours', agent: tagged ? agent : undefined, bare: tagged && more.length === 0 };
  }
  return INSIDE.test(command) ? { kind: 'customised' } : { kind: 'foreign' };
}

/** Whether a command is the sink of the program that this one's wire comes from; both then report (S-806). */
export function isRelated(command: string): boolean {
  return /(?:^|[\s"'\\/])omni-dev(?:\.exe)?["']?\s+sessions\s+hook(?:\s|$)/.test(command);
}
