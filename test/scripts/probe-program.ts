/** A small program for the build tests: says what it sees of its surroundings. */
declare const BUILD_VERSION: string | undefined;
declare const BUILD_COMMIT: string | undefined;
declare const BUILD_TARGET: string | undefined;

class Named {}

const seen = {
  version: typeof BUILD_VERSION === 'string' ? BUILD_VERSION : null,
  commit: typeof BUILD_COMMIT === 'string' ? BUILD_COMMIT : null,
  target: typeof BUILD_TARGET === 'string' ? BUILD_TARGET : null,
  home: process.env['SHADOWOB_CONNECTOR_HOME'] ?? null,
  nodeOptions: process.env['NODE_OPTIONS'] ?? null,
  bunOptions: process.env['BUN_OPTIONS'] ?? null,
  preloaded: 'HOSTILE' in globalThis,
  execArgv: process.execArgv,
  name: Named.name,
};
process.stdout.write(`${JSON.stringify(seen)}\n`);
