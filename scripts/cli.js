#!/usr/bin/env node
/**
 * Hands over to the compiled executable. The desktop app starts `<its helper as Node> cli.js <arguments>`
 * with ELECTRON_RUN_AS_NODE=1, so the executable alone is no drop-in.
 *
 * Exit code: the executable's own; 41 when it is missing or cannot be started. When a signal ended it,
 * this process ends by the same signal. Node 20 or later, no dependencies. Written so that it loads as
 * an ES module and as CommonJS: which of the two depends on the package.json that the app lays beside it.
 */
const MISSING = 41;
const RELAYED = ['SIGINT', 'SIGTERM', 'SIGHUP'];
/** Milliseconds between two looks at the parent, and what the executable gets to end in an orderly way. */
const PARENT_CHECK_MS = 500;
const GRACE_MS = 10_000;

/** Names that the executable may have beside us, the likeliest first. */
function candidateNames(platform, arch, isMusl) {
  const extension = platform === 'win32' ? '.exe' : '';
  const os = platform === 'win32' ? 'windows' : platform;
  const libcs = platform !== 'linux' ? [''] : isMusl() ? ['-musl', ''] : ['', '-musl'];
  // The helper may itself be translated (Rosetta, x64 on Windows arm64): the other build runs there too.
  const arches = platform === 'linux' ? [arch] : [arch, arch === 'x64' ? 'arm64' : 'x64'];
  const suffixes = arches.flatMap((one) => libcs.map((libc) => `-${os}-${one}${libc}`));
  return ['', ...suffixes].map((suffix) => `shadowob-connector${suffix}${extension}`);
}

/** No glibc version in Node's own report: this Node, and so the system, is musl. */
function nodeIsMusl() {
  process.report.excludeNetwork = true;
  return !process.report.getReport().header.glibcVersionRuntime;
}

function findBinary(fs, path, folder) {
  const isFile = (file) => fs.statSync(file, { throwIfNoEntry: false })?.isFile() ?? false;
  const beside = candidateNames(process.platform, process.arch, nodeIsMusl).map((name) =>
    path.join(folder, name),
  );
  return [...beside, process.env.SHADOWOB_CONNECTOR_BINARY].find((file) => file && isFile(file));
}

/**
 * An ELF program for another processor. Where the C library answers "not a program" by handing the file to a
 * shell, starting it would not fail but print rubbish.
 */
function isForAnotherProcessor(fs, binary) {
  const head = Buffer.alloc(20);
  const file = fs.openSync(binary, 'r');
  fs.readSync(file, head, 0, head.length, 0);
  fs.closeSync(file);
  if (head.toString('latin1', 0, 4) !== '\x7fELF') return false;
  return { x64: 62, arm64: 183 }[process.arch] !== head.readUInt16LE(18);
}

/** Windows' environment names ignore case. */
function childEnvironment() {
  const kept = Object.entries(process.env).filter(([name]) => name.toUpperCase() !== 'ELECTRON_RUN_AS_NODE');
  return Object.fromEntries(kept);
}

function fail(message) {
  process.stderr.write(`shadowob-connector: ${message}\n`);
  process.exitCode = MISSING;
}

function failToStart(binary, reason) {
  fail(
    `cannot start ${binary}: ${reason}\n` +
      'Is it the build for this system? Install the right one with scripts/install.sh (install.ps1 on Windows).',
  );
}

/** Ends the way the executable ended. */
function endLike(code, signal) {
  if (signal === null) process.exit(code);
  for (const name of RELAYED) process.removeAllListeners(name);
  process.kill(process.pid, signal);
  // Still here: this system cannot end a process by that signal.
  import('node:os').then((os) => process.exit(128 + (os.constants.signals[signal] ?? 0)));
}

/** TERM, then KILL: nothing that we started may outlive us. */
function endChild(child) {
  child.kill('SIGTERM');
  setTimeout(() => child.kill('SIGKILL'), GRACE_MS).unref();
}

function run(spawn, tty, binary) {
  const child = spawn(binary, process.argv.slice(2), {
    stdio: 'inherit',
    env: childEnvironment(),
    windowsHide: true,
  });
  // By descriptor: touching process.stdin would change the pipe that the executable reads from.
  const onTerminal = [0, 1, 2].some((descriptor) => tty.isatty(descriptor));
  for (const name of RELAYED) {
    process.on(name, () => {
      // Ctrl-C reaches the whole foreground group: the executable has its own copy, and a second one
      // would mean "at once" to it.
      if (name === 'SIGINT' && onTerminal) return;
      if (name === 'SIGTERM') return endChild(child);
      child.kill(name);
    });
  }
  // An app that crashes sends no signal; it shows as a new parent. On Windows the parent's id never
  // changes, but there a job object of libuv ends the children of an app or of this launcher with it.
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(watch);
    endChild(child);
  }, PARENT_CHECK_MS);
  child.on('error', (error) => {
    clearInterval(watch);
    failToStart(binary, error.message);
  });
  child.on('exit', (code, signal) => {
    clearInterval(watch);
    endLike(code, signal);
  });
}

async function main() {
  const [{ spawn }, fs, path, tty] = await Promise.all([
    import('node:child_process'),
    import('node:fs'),
    import('node:path'),
    import('node:tty'),
  ]);
  // npm's bin entry is a link; the executable lies beside the file that it points to.
  const folder = path.dirname(fs.realpathSync(process.argv[1]));
  const binary = findBinary(fs, path, folder);
  if (binary && isForAnotherProcessor(fs, binary)) return failToStart(binary, 'it is for another processor');
  if (binary) return run(spawn, tty, binary);
  fail(
    `no executable for ${process.platform} ${process.arch} in ${folder}.\n` +
      'Build it with `npm run build`, install it with scripts/install.sh (install.ps1 on Windows), or name it in ' +
      'SHADOWOB_CONNECTOR_BINARY.',
  );
}

main().catch((error) => fail(error instanceof Error ? error.message : String(error)));
