import { oneLine } from '../../runtime/session/text.ts';
import type { Glance, GlanceRow } from './glance.ts';

/** The programs that a status line is made for. */
export const STATUS_FORMATS = ['plain', 'tmux', 'starship', 'waybar', 'swiftbar', 'xbar', 'argos'] as const;
export type StatusFormat = (typeof STATUS_FORMATS)[number];

/** Program and first arguments with which a menu calls us back. */
export type Self = readonly string[];

/**
 * The line for one program; `undefined` is "no daemon": prompts and bars then show nothing at all, and a menu says so
 * and offers to start one. Every text is made harmless for the program that reads it.
 */
export function statusLine(glance: Glance | undefined, format: StatusFormat, self: Self): string {
  switch (format) {
    case 'plain':
    case 'starship':
      return glance ? oneLine(summary(glance)) : '';
    case 'tmux':
      return glance ? tmuxLine(glance) : '';
    case 'waybar':
      return waybarLine(glance);
    case 'swiftbar':
    case 'xbar':
    case 'argos':
      return menu(glance, format, self);
  }
}

/** "2 waiting · 1 working", one that waits alone by its name; nothing while nobody waits or works. */
function summary(glance: Glance): string {
  return [waitingPart(glance), workingPart(glance)].filter((part) => part !== '').join(' · ');
}

function waitingPart({ waiting, sessions }: Glance): string {
  const [row] = sessions.filter(({ needsYou }) => needsYou);
  if (waiting === 1 && row) return `1 waiting (${nameOf(row)})`;
  return waiting > 0 ? `${waiting} waiting` : '';
}

function workingPart({ working }: Glance): string {
  return working > 0 ? `${working} working` : '';
}

/** A `#` begins styles and formats of tmux; doubled it is a letter. */
export function escapeTmux(text: string): string {
  return oneLine(text).replaceAll('#', '##');
}

function tmuxLine(glance: Glance): string {
  const [waiting, working] = [waitingPart(glance), workingPart(glance)].map(escapeTmux);
  return [waiting && `#[fg=yellow]${waiting}#[default]`, working].filter(Boolean).join(' · ');
}

/** Runtime and folder, and the title where it was asked for. */
function nameOf({ runtime, folder, title }: GlanceRow): string {
  return [runtime, folder, title].filter((part) => part !== undefined).join(' · ');
}

/** Texts of waybar are Pango markup. */
export function escapePango(text: string): string {
  return oneLine(text)
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;');
}

function waybarLine(glance: Glance | undefined): string {
  if (!glance) return JSON.stringify({ text: '', tooltip: 'no daemon is running', class: 'off', alt: 'off' });
  const word = glance.waiting > 0 ? 'waiting' : glance.working > 0 ? 'working' : 'idle';
  const tooltip = glance.sessions.map((row) => escapePango(rowText(row))).join('\n');
  return JSON.stringify({ text: escapePango(summary(glance)), tooltip, class: word, alt: word });
}

/** Glyphs of S-854. */
const GLYPHS: Readonly<Record<string, string>> = {
  waiting_for_approval: '!',
  blocked: '?',
  running: '⚙',
  streaming: '⚙',
  tool_call: '⚙',
};

const WORDS: Readonly<Record<string, string>> = {
  waiting_for_approval: 'waiting for approval',
  blocked: 'waiting for you',
  running: 'working',
  streaming: 'working',
  tool_call: 'working',
};

function rowText(row: GlanceRow): string {
  return `${GLYPHS[row.state] ?? '◦'} ${nameOf(row)}: ${WORDS[row.state] ?? row.state}`;
}

type MenuFormat = Extract<StatusFormat, 'swiftbar' | 'xbar' | 'argos'>;

/** `|` parts a line from its parameters and can't be escaped, so a bar that looks like it stands there. */
export function escapeMenu(text: string): string {
  return oneLine(text).replaceAll('|', '❘');
}

/** No emoji codes, colours, symbols or markup out of somebody's folder name. */
const LITERAL: Readonly<Record<MenuFormat, string>> = {
  swiftbar: 'emojize=false symbolize=false ansi=false md=false trim=false',
  xbar: 'emojize=false ansi=false trim=false',
  argos: 'emojize=false ansi=false useMarkup=false unescape=false trim=false',
};

function menu(glance: Glance | undefined, format: MenuFormat, self: Self): string {
  const line = (text: string, action: string): string =>
    `${escapeMenu(text)} | ${[LITERAL[format], action].filter(Boolean).join(' ')}`;
  if (!glance) {
    return [
      line('◦', ''),
      '---',
      line('No daemon is running', ''),
      line('Start it', call(format, [...self, 'daemon', 'start'])),
    ].join('\n');
  }
  const rows = glance.sessions.map((row) => {
    // Only an editor window can be brought to the front; a terminal is a plain label (S-854).
    const action =
      row.window && isPlainId(row.sessionId) ? call(format, [...self, 'focus', row.sessionId]) : '';
    return line(rowText(row), action);
  });
  const none = rows.length === 0 ? [line('No sessions', '')] : [];
  return [line(summary(glance) || '◦', ''), '---', ...rows, ...none].join('\n');
}

/** Ids go into commands only where they are plain words. */
function isPlainId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(id);
}

/**
 * What a click runs; nothing where a word can't be written safely. SwiftBar and xbar take a program and its parameters,
 * Argos a line for `bash -c`.
 */
function call(format: MenuFormat, words: Self): string {
  if (words.some((word) => !/^[A-Za-z0-9 ._/@+:~-]+$/.test(word) || word.startsWith('-'))) return '';
  const [program = '', ...rest] = words;
  if (format === 'argos')
    return `bash="${words.map((word) => `'${word}'`).join(' ')}" terminal=false refresh=true`;
  const parameters = rest.map((word, index) => `param${index + 1}="${word}"`);
  return [`bash="${program}"`, ...parameters, 'terminal=false', 'refresh=true'].join(' ');
}
