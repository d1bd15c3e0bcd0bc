import { mkdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { Glob } from 'bun';
import type { Lab, Started } from './lab.ts';
import { startResponses } from './models/responses.ts';
import { asObject, type Body, type Model } from './models/server.ts';
import type { Terminal } from './terminal.ts';

/** Codex 0.171.0 in a lab, with a model of its own. */
export interface Codex {
  readonly model: Model;
  readonly home: string;
  /** Opens plain `codex` in a trusted folder, and waits for its prompt. */
  open(folder: string, ...args: string[]): Promise<Terminal>;
  /** The payloads of the first records of all rollouts: what each session says about itself. */
  firstRecords(): Promise<readonly Body[]>;
  exec(folder: string, prompt: string, ...args: string[]): Started;
}

export async function prepareCodex(lab: Lab, trusted: readonly string[]): Promise<Codex> {
  const model = lab.model(startResponses);
  const home = join(lab.home, '.codex');
  lab.set({ MOCK_API_KEY: 'lab-key-that-opens-nothing' });
  await mkdir(home);
  await Bun.write(join(home, 'config.toml'), configuration(model.url, trusted));
  lab.onEnd(() => nameSocket(lab, home));
  return {
    model,
    home,
    async open(folder, ...args) {
      const terminal = await lab.terminal({ command: ['codex', ...args], cwd: folder });
      // The name of the model comes when the server has opened a thread for it.
      await terminal.shows(/GPT-5\.\d.* · /);
      return terminal;
    },
    async firstRecords() {
      const glob = new Glob('sessions/**/rollout-*.jsonl');
      const files = await Array.fromAsync(glob.scan({ cwd: home, absolute: true }));
      return Promise.all(files.map(firstRecord));
    },
    exec: (folder, prompt, ...args) =>
      lab.start(['codex', 'exec', '--skip-git-repo-check', '--json', ...args, prompt], folder),
  };
}

/** The shared server's socket lies in the system's folder for temporary files, whatever the environment says. */
async function nameSocket(lab: Lab, home: string): Promise<void> {
  const link = join(home, 'app-server-control', 'app-server-control.sock');
  // No link: no server was started.
  const socket = await readlink(link).catch(() => undefined);
  if (socket === undefined) return;
  lab.outside(socket);
  lab.outside(`${socket}.lock`);
}

async function firstRecord(file: string): Promise<Body> {
  const [line = ''] = (await Bun.file(file).text()).split('\n');
  return asObject(asObject(JSON.parse(line))?.['payload']) ?? {};
}

function configuration(url: string, trusted: readonly string[]): string {
  const projects = trusted.map((path) => `[projects.${JSON.stringify(path)}]\ntrust_level = "trusted"\n`);
  return `model = "gpt-5.5"
model_provider = "lab"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false

[analytics]
enabled = false

[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
"gpt-5.6-sol" = "gpt-6-sol"

[model_providers.lab]
name = "Lab"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "MOCK_API_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false

${projects.join('\n')}`;
}
