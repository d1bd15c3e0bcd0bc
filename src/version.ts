declare const BUILD_VERSION: string | undefined;
declare const BUILD_COMMIT: string | undefined;
declare const BUILD_TARGET: string | undefined;

/** The version of this build; `0.0.0-dev` when it runs from source. */
export const VERSION = typeof BUILD_VERSION === 'string' ? BUILD_VERSION : '0.0.0-dev';

/** What `--version` prints: the version alone on the first line, so that scripts may read it. */
export function versionText(): string {
  const commit = typeof BUILD_COMMIT === 'string' ? BUILD_COMMIT : 'source';
  const target = typeof BUILD_TARGET === 'string' ? BUILD_TARGET : `${process.platform}-${process.arch}`;
  return `${VERSION}\ncommit ${commit}, ${target}\n`;
}
