import { type Data, lookup } from '../edit/data.ts';
import { removeKey, setValue } from '../edit/operation.ts';
import type { Wiring } from '../edit/wiring.ts';
import { shimAt } from './shim.ts';

/** The setting with which Claude Code's extension lets another program start its process (S-840). */
export const SETTING = 'claudeCode.claudeProcessWrapper';

/** What a settings file says about the wrapper. */
export type Pointing =
  | { readonly kind: 'none' }
  /** At a shim of ours: this one, or one of another place. */
  | { readonly kind: 'ours'; readonly at: string }
  | { readonly kind: 'foreign'; readonly value: string };

/** Whether the setting names our shim: by its path, or by what lies there (H6, S-844). */
export function pointingOf(data: Data, shim: string): Pointing {
  const value = lookup(data, [SETTING]);
  if (value === undefined || value === null || value === '') return { kind: 'none' };
  if (typeof value !== 'string') return { kind: 'foreign', value: JSON.stringify(value) };
  if (value === shim || shimAt(value) === 'ours') return { kind: 'ours', at: value };
  return { kind: 'foreign', value };
}

/** How the setting comes in, and how it goes; somebody else's value is left alone unless it may be replaced. */
export function wrapperWiring(shim: string, mayReplace: boolean): Wiring {
  return {
    id: 'vscode-claude-wrapper',
    // With comments and commas at ends, as VS Code reads it.
    format: 'jsonc',
    install(data) {
      const pointing = pointingOf(data, shim);
      if (pointing.kind === 'foreign' && !mayReplace) return [];
      return lookup(data, [SETTING]) === shim ? [] : [setValue([SETTING], shim)];
    },
    remove: (data) => (pointingOf(data, shim).kind === 'ours' ? [removeKey([SETTING])] : []),
  };
}
