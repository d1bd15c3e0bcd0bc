import { endpointOf } from '../../runtime/daemon/endpoint.ts';
import link from './source/link.mjs' with { type: 'text' };

/** Raised with every change of a text that is written out, so that an older one is known as such (S-830). */
export const GENERATION = 1;

/** A text of ours for a program's extensions folder. */
export interface Extension {
  /** The runtime that it is for, as its header says. */
  readonly runtimeId: string;
  readonly fileName: string;
  /** The whole file, byte for byte. */
  text(socketPath: string, platform: NodeJS.Platform): string;
}

const MARK = '// shadowob-connector: generated for';

/** The first line of every file that is ours; what follows the runtime may change with a version. */
export function headerOf(runtimeId: string, generation: number = GENERATION): string {
  return `${MARK} ${runtimeId}, generation ${generation}. Written by install-hooks and removed by uninstall-hooks.`;
}

/** What a file's first line says of it: the generation of one of ours, undefined for anybody else's (S-830). */
export function generationOf(text: string, runtimeId: string): number | undefined {
  const [first = ''] = text.replace(/^\ufeff/, '').split('\n', 1);
  const start = `${MARK} ${runtimeId}, generation `;
  if (!first.startsWith(start)) return undefined;
  const generation = /^(\d{1,6})\. /.exec(first.slice(start.length))?.[1];
  return generation === undefined ? undefined : Number(generation);
}

/**
 * Joins our two modules into one file without a dependency: the shared one loses its exports, the other one its import
 * of it, and the socket's address stands in it as a JSON string (S-750, C-331).
 */
export function assemble(
  runtimeId: string,
  source: string,
  socketPath: string,
  platform: NodeJS.Platform,
): string {
  const address = JSON.stringify(endpointOf(socketPath, platform).path);
  const own = source
    .replace(/^import \{[^}]*\} from '\.\/link\.mjs';\n/m, '')
    .replace(/^ *\/\/ biome-ignore .*\n/gm, '')
    .replace("'@ADDRESS@'", () => address)
    .replace('const GENERATION = 0;', `const GENERATION = ${GENERATION};`);
  const shared = link.replace(/^export /gm, '');
  return `${headerOf(runtimeId)}\n${shared.trimEnd()}\n\n${own.trim()}\n`;
}
