/** One place that turns the entry file into an executable, so that every build has the same options. */

export type CompileOptions = {
  /** The entry file. */
  readonly entry: string;
  /** Where the executable goes. */
  readonly outfile: string;
  readonly version: string;
  /** The commit it was built from; `unknown` outside a repository. */
  readonly commit: string;
  /** `linux-x64` and the like; what `--version` and bug reports say. */
  readonly targetName: string;
  readonly bytecode: boolean;
  /** Windows shows title, publisher and version of every executable; Bun's own would stand there. */
  readonly windows: boolean;
  /** Absent: the Bun that runs this script is the runtime, and nothing is fetched. */
  readonly cross?: { readonly bun: Bun.Build.CompileTarget; readonly runtime: string };
};

/** The build failed; the message is what the bundler said. */
export class CompileError extends Error {
  override readonly name = 'CompileError';
}

/**
 * Compiles one executable. Throws `CompileError` with the bundler's words.
 *
 * The result reads nothing of the folder it is started in: Bun's default is to load `.env` and
 * `bunfig.toml` there, and the latter's `preload` runs code (B1). `execArgv` stays unset, since it
 * switches that off again in some versions (B2); `test/scripts/hostile-folder.test.ts` proves both.
 */
export async function compile(options: CompileOptions): Promise<void> {
  const result = await Bun.build({
    entrypoints: [options.entry],
    target: 'bun',
    format: 'esm',
    // Names stay whole: errors and zod print class and function names, and the gain was measured as nil.
    minify: { whitespace: true, syntax: true, identifiers: false },
    bytecode: options.bytecode,
    // What is imported on demand stays a file of its own: `hook` then starts as fast as an empty program.
    splitting: true,
    sourcemap: 'none',
    // Nothing of the build machine's environment is inlined.
    env: 'disable',
    define: {
      'process.env.NODE_ENV': '"production"',
      BUILD_VERSION: JSON.stringify(options.version),
      BUILD_COMMIT: JSON.stringify(options.commit),
      BUILD_TARGET: JSON.stringify(options.targetName),
    },
    compile: {
      outfile: options.outfile,
      autoloadDotenv: false,
      autoloadBunfig: false,
      autoloadTsconfig: false,
      autoloadPackageJson: false,
      // Only a build on Windows can write these; Bun 1.4.5 ignores them elsewhere without a word.
      ...(options.windows ? { windows: windowsDetails(options.version) } : {}),
      ...(options.cross ? { target: options.cross.bun, executablePath: options.cross.runtime } : {}),
    },
    throw: false,
  });
  if (result.success) return;
  throw new CompileError(result.logs.map(String).join('\n') || 'the bundler gave no reason');
}

function windowsDetails(version: string): NonNullable<Bun.CompileBuildOptions['windows']> {
  const numbers = version.split(/[^0-9]+/).filter(Boolean);
  return {
    title: 'shadowob-connector',
    publisher: 'Shadow',
    version: [...numbers, '0', '0', '0', '0'].slice(0, 4).join('.'),
    description: 'shadowob-connector',
    copyright: 'MIT',
  };
}
