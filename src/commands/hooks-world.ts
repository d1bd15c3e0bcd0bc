import { CATALOG } from '../adapters/catalog.ts';
import { scanInstallations } from '../adapters/installation/scan.ts';
import { versionFrom } from '../adapters/installation/version-text.ts';
import { createEditor } from '../install/edit/editor.ts';
import { findIntegration, INTEGRATIONS } from '../install/hooks/index.ts';
import type { HooksContext, Integration, RuntimeProgram } from '../install/hooks/integration.ts';
import { isOurProgram } from '../install/hooks/marker.ts';
import { socketPathIn } from '../runtime/daemon/endpoint.ts';
import { ConnectorError } from '../runtime/errors.ts';
import { scrubbedEnv } from '../runtime/process/scrubbed-env.ts';
import { createProgramSearch } from '../runtime/process/search-path.ts';
import { run } from '../runtime/process/spawn.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { clientOf, likelyHolder, ping } from './daemon-reach.ts';
import { buildCommit } from './daemon-world.ts';
import { installationHost } from './runtimes.ts';
import { nearest } from './suggest.ts';
import type { World } from './world.ts';

/** Options that the three commands about hooks share; a runtime's own come from its integration. */
export const HOOKS_ARGS = {
  runtime: {
    type: 'string',
    description: `Only these (comma-separated): ${INTEGRATIONS.map((one) => one.id).join(', ')}`,
    valueHint: 'id',
  },
  agent: { type: 'string', description: 'The same as --runtime', valueHint: 'id' },
  ...Object.fromEntries(
    INTEGRATIONS.flatMap((one) => one.options).map(({ name, description, valueHint }) => [
      name,
      { type: 'string', description, valueHint },
    ]),
  ),
} as const;

type Words = Readonly<Record<string, unknown>>;

/** The integrations that a command is about, and whether they were named. */
export function chosenIntegrations(args: Words): {
  readonly list: readonly Integration[];
  readonly named: boolean;
} {
  const words = [args['runtime'], args['agent']]
    .flatMap((value) => (typeof value === 'string' ? value.split(',') : []))
    .map((word) => word.trim())
    .filter((word) => word !== '');
  if (words.length === 0) return { list: INTEGRATIONS, named: false };
  const chosen = words.map(integrationOf);
  return { list: INTEGRATIONS.filter((one) => chosen.includes(one)), named: true };
}

function integrationOf(word: string): Integration {
  const found = findIntegration(word);
  if (found) return found;
  const known = INTEGRATIONS.flatMap((one) => [one.id, ...one.aliases]);
  const hint = nearest(word, known);
  throw new ConnectorError(
    'notFound',
    `there are no hooks for "${word}"${hint ? `; did you mean "${hint}"?` : ''}`,
    `There are: ${INTEGRATIONS.map((one) => one.id).join(', ')}`,
  );
}

/** How long programs may take to say their versions, milliseconds. */
const VERSIONS_MS = 5_000;

/** What integrations get of the world. Refuses a program that would not be known again (R-31). */
export function hooksContext(world: World, args: Words): HooksContext {
  const [program = '', ...rest] = world.self;
  if (rest.length > 0 || !isOurProgram(program)) {
    throw new ConnectorError(
      'unsupported',
      'hooks start the compiled program, by the name shadowob-connector',
      'Run it from there: shadowob-connector install-hooks',
    );
  }
  const connector = connectorHome(world.env, world.home);
  const options = Object.entries(args).flatMap(([name, value]): [string, string][] => {
    if (typeof value === 'string') return [[name, value]];
    return value === true ? [[name, 'true']] : [];
  });
  const found = new Map<string, Promise<readonly RuntimeProgram[]>>();
  return {
    env: world.env,
    home: world.home,
    cwd: world.cwd,
    platform: world.platform,
    connectorHome: connector,
    program,
    editor: createEditor({ home: connector, now: () => new Date(world.now()) }),
    run,
    now: world.now,
    signal: world.signal,
    log: world.log,
    options: Object.fromEntries(options),
    programs(runtimeId) {
      const known = found.get(runtimeId);
      if (known) return known;
      const looking = programsOf(world, runtimeId);
      found.set(runtimeId, looking);
      return looking;
    },
  };
}

/** The program that would be started, then every other of the same name: all of them read the same settings. */
async function programsOf(world: World, runtimeId: string): Promise<readonly RuntimeProgram[]> {
  const entries = CATALOG.filter((entry) => entry.id === runtimeId);
  const host = installationHost(world);
  const { reports } = await scanInstallations(host, { entries, deadlineAt: world.now() + VERSIONS_MS });
  const [report] = reports;
  if (report?.path === null || report === undefined) return [];
  const search = createProgramSearch(host);
  const withEnv = async (path: string): Promise<RuntimeProgram> => {
    const program = search.at(path);
    const env = Object.entries(scrubbedEnv(world.env)).filter(([name]) => name.toUpperCase() !== 'PATH');
    const rest = Object.fromEntries(env);
    return { path, env: program ? { ...rest, PATH: await search.pathFor(program) } : scrubbedEnv(world.env) };
  };
  const first = await withEnv(report.path);
  const others = report.others.filter((other) => !other.problem?.includes('another program has the name'));
  const asked = others.map(async (other) => {
    const program = await withEnv(other.path);
    return withVersion(program, await askVersion(program, report.entry.versionArguments));
  });
  return [withVersion(first, report.version ?? undefined), ...(await Promise.all(asked))];
}

const withVersion = (program: RuntimeProgram, version: string | undefined): RuntimeProgram =>
  version === undefined ? program : { ...program, version };

async function askVersion(program: RuntimeProgram, words: readonly string[]): Promise<string | undefined> {
  const result = await run({ argv: [program.path, ...words], env: program.env, timeoutMs: VERSIONS_MS });
  return result.kind === 'exited' && result.code === 0
    ? (versionFrom(result.stdout, result.stderr) ?? undefined)
    : undefined;
}

/**
 * A daemon of another build may refuse what these hooks send, and they are silent about it (S-326, S-327): the commit
 * decides, else the version; what is not known is never held against it.
 */
export async function daemonWarnings(world: World): Promise<readonly string[]> {
  const socketPath = socketPathIn(connectorHome(world.env, world.home));
  if (!likelyHolder(socketPath)) return [];
  const running = await ping(clientOf(world, socketPath));
  if (!running) return [];
  const [theirs, ours] = [running.commit ?? 'unknown', buildCommit()];
  const isSame =
    theirs !== 'unknown' && ours !== 'unknown'
      ? theirs === ours
      : running.version === 'unknown' || running.version === world.version;
  if (isSame) return [];
  const builds = `${running.version} (${theirs}), this program ${world.version} (${ours})`;
  return [`The daemon is another build, ${builds}: shadowob-connector daemon restart`];
}
