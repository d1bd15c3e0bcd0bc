import { assemble, type Extension } from './generate.ts';
import source from './source/opencode.mjs' with { type: 'text' };

/** The plugin for OpenCode 1.18.33, which loads every `plugin/*.js` of its configuration folder. */
export const opencodePlugin: Extension = {
  runtimeId: 'opencode',
  fileName: 'shadowob-connector.js',
  text: (socketPath, platform) => assemble('opencode', source, socketPath, platform),
};
