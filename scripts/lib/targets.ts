/**
 * The one table of what we release. To add a target, add a row: the builder, the tests and the checks
 * read nothing else. The installers repeat only the asset name rule, and `test/scripts` holds them to it.
 */

/** The Bun that every executable is built on; the same number stands in `package.json`. */
export const BUN_VERSION = '1.4.5';

export type TargetOs = 'linux' | 'darwin' | 'windows';
export type TargetArch = 'x64' | 'arm64';

export type Target = {
  readonly os: TargetOs;
  readonly arch: TargetArch;
  /** Only Linux has two C libraries to tell apart. */
  readonly libc: 'glibc' | 'musl' | 'system';
  /** What `Bun.build` calls it. */
  readonly bun: Bun.Build.CompileTarget;
  /** The npm package whose `bin/` holds the runtime that the bundle is appended to. */
  readonly runtimePackage: string;
  /** Subresource integrity of that package's archive at `BUN_VERSION`; a mismatch ends the build. */
  readonly integrity: string;
  /** Measured per target in `docs/decisions/0001-build.md`. */
  readonly bytecode: boolean;
};

/**
 * Order is the order of release notes. x64 is always `baseline`: the default build needs AVX2 on some Bun
 * versions and dies with SIGILL elsewhere (B6). darwin x64 has no baseline build of its own (B7).
 */
export const TARGETS: readonly Target[] = [
  {
    os: 'linux',
    arch: 'x64',
    libc: 'glibc',
    bun: 'bun-linux-x64-baseline',
    runtimePackage: '@oven/bun-linux-x64-baseline',
    integrity:
      'sha512-s8yMwYcFnnrA178gji0gZbkE2WVDej/Ti1x770oPfihxyRxSMNhGhiAQNXV53aDeraZxksdvKV/RAdQBCd0qPA==',
    bytecode: true,
  },
  {
    os: 'linux',
    arch: 'arm64',
    libc: 'glibc',
    bun: 'bun-linux-arm64',
    runtimePackage: '@oven/bun-linux-aarch64',
    integrity:
      'sha512-4BXmsSKnjOrlGWqZV4x/oWa7AVoR+B6lCXddMzOAXBIm3t50eslg9wb66gmtW1AamEQ1l1CDvmmruysEhqOWMg==',
    bytecode: true,
  },
  {
    os: 'linux',
    arch: 'x64',
    libc: 'musl',
    bun: 'bun-linux-x64-baseline-musl',
    runtimePackage: '@oven/bun-linux-x64-musl-baseline',
    integrity:
      'sha512-cWJhU8h0+MiUgpSt99sQhjxLIIosKEcKYdtKddohokUvAuN6jKOy7g7+QDTZTXtwHxz93wL3BX+L6wXVPDUH3A==',
    bytecode: true,
  },
  {
    os: 'linux',
    arch: 'arm64',
    libc: 'musl',
    bun: 'bun-linux-arm64-musl',
    runtimePackage: '@oven/bun-linux-aarch64-musl',
    integrity:
      'sha512-XCNc+WvvMAdNNb+OWTogpy+N9wm62fkVeEVLb6how0RZhW5LPi6c7BlkeVCuWps7XjEl2saFpHFa20/1E+PAHg==',
    bytecode: true,
  },
  {
    os: 'darwin',
    arch: 'arm64',
    libc: 'system',
    bun: 'bun-darwin-arm64',
    runtimePackage: '@oven/bun-darwin-aarch64',
    integrity:
      'sha512-4MIFXHmctH2EhAxLXm2/qxNtv17dFtLJylvaOCsrgq6KSqHTs6eW5YSrJjRbJxYUJaR901fsN8JfZOa+CsWpWQ==',
    bytecode: true,
  },
  {
    os: 'darwin',
    arch: 'x64',
    libc: 'system',
    bun: 'bun-darwin-x64',
    runtimePackage: '@oven/bun-darwin-x64',
    integrity:
      'sha512-qkLPMGHZM9NI6CeHTWwVezzmlo6cC4Ta7yUAjYIWXS366qQcOlcp75t2uZyiuVRBMPS0h9qE0tCcvCHGaFqjJg==',
    bytecode: true,
  },
  {
    os: 'windows',
    arch: 'x64',
    libc: 'system',
    bun: 'bun-windows-x64-baseline',
    runtimePackage: '@oven/bun-windows-x64-baseline',
    integrity:
      'sha512-/U3Dc74uGqE6EUqef7mPtg9KwJs7iJH4JHRMfIZIn18MrJh6Xz4gVvWDXRvzCL2j8wPlTnJVyrO4n7Qq4uM7TQ==',
    bytecode: true,
  },
  {
    os: 'windows',
    arch: 'arm64',
    libc: 'system',
    bun: 'bun-windows-arm64',
    runtimePackage: '@oven/bun-windows-aarch64',
    integrity:
      'sha512-MiPFZnBNDnBXgr1oONc5pizC4fOLjnIOfNkYdFEnWzLmoFTg86naZIG3SvS7d/GglpQSAnCKMAzSjI/TAckiRw==',
    bytecode: true,
  },
];

/** `linux-x64`, `linux-x64-musl`, `windows-arm64`: the name of a target on the command line and in assets. */
export function targetName(target: Pick<Target, 'os' | 'arch' | 'libc'>): string {
  const libc = target.libc === 'musl' ? '-musl' : '';
  return `${target.os}-${target.arch}${libc}`;
}

/** `shadowob-connector-<os>-<arch>[-musl][.exe]`: the file name of a release asset. */
export function assetName(target: Pick<Target, 'os' | 'arch' | 'libc'>): string {
  const extension = target.os === 'windows' ? '.exe' : '';
  return `shadowob-connector-${targetName(target)}${extension}`;
}

/** The row with this name, or undefined: the caller says which names there are. */
export function findTarget(name: string): Target | undefined {
  return TARGETS.find((target) => targetName(target) === name);
}
