import { readdirSync } from 'node:fs';
import { posix, win32 } from 'node:path';
import { SHIM_NAME } from './shim.ts';

/** Where editors of the VS Code family keep their user settings (S-840). */

export interface EditorContext {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The user's home folder. */
  readonly home: string;
  readonly platform: NodeJS.Platform;
}

/** One editor of the family. */
export interface EditorPlace {
  readonly id: 'vscode' | 'vscode-insiders' | 'cursor' | 'vscodium';
  /** The product's own name. */
  readonly label: string;
  /** Its `User` folder. */
  readonly folder: string;
  readonly settings: string;
}

/** Stable VS Code first: it is the one that is meant when none is found. */
const EDITORS = [
  { id: 'vscode', label: 'VS Code', name: 'Code' },
  { id: 'vscode-insiders', label: 'VS Code Insiders', name: 'Code - Insiders' },
  { id: 'cursor', label: 'Cursor', name: 'Cursor' },
  { id: 'vscodium', label: 'VSCodium', name: 'VSCodium' },
] as const;

/** Every editor's place on this system, whether it is there or not. */
export function editorPlaces(context: EditorContext): readonly [EditorPlace, ...EditorPlace[]] {
  const path = context.platform === 'win32' ? win32 : posix;
  const root = configRoot(context);
  const place = ({ id, label, name }: (typeof EDITORS)[number]): EditorPlace => {
    const folder = path.join(root, name, 'User');
    return { id, label, folder, settings: path.join(folder, 'settings.json') };
  };
  const [first, ...others] = EDITORS;
  return [place(first), ...others.map(place)];
}

function configRoot({ env, home, platform }: EditorContext): string {
  if (platform === 'darwin') return posix.join(home, 'Library', 'Application Support');
  if (platform === 'win32') return env['APPDATA'] || win32.join(home, 'AppData', 'Roaming');
  return env['XDG_CONFIG_HOME'] || posix.join(home, '.config');
}

/** The settings of an editor's profiles, which may name the wrapper as well (S-844). */
export function profileSettings(place: EditorPlace, platform: NodeJS.Platform): readonly string[] {
  const path = platform === 'win32' ? win32 : posix;
  const folder = path.join(place.folder, 'profiles');
  return namesIn(folder).map((name) => path.join(folder, name, 'settings.json'));
}

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    // No profiles.
    return [];
  }
}

/** Where the shim lies unless its user names another place. */
export function shimPathIn(connectorHome: string): string {
  return posix.join(connectorHome, SHIM_NAME);
}
