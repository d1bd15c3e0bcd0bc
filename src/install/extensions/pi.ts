import { assemble, type Extension } from './generate.ts';
import source from './source/pi.mjs' with { type: 'text' };

/** The extension for pi 1.6.0: plain JavaScript in a `.ts` file, which pi loads without a build (S-750). */
export const piExtension: Extension = {
  runtimeId: 'pi',
  fileName: 'shadowob-connector-sessions.ts',
  text: (socketPath, platform) => assemble('pi', source, socketPath, platform),
};
