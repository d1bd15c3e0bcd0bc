import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Lab } from './lab.ts';
import { startChat } from './models/chat.ts';
import type { Model } from './models/server.ts';
import { NODE_PATH } from './programs.ts';
import type { Terminal } from './terminal.ts';

/** pi 1.6.0 in a lab, with a model of its own. */
export interface Pi {
  readonly model: Model;
  /** Opens the terminal program and waits for its prompt. */
  open(folder: string, ...args: string[]): Promise<Terminal>;
}

export async function preparePi(lab: Lab): Promise<Pi> {
  const model = lab.model(startChat);
  const folder = join(lab.home, '.pi', 'agent');
  await mkdir(folder, { recursive: true });
  const models = {
    providers: {
      lab: {
        baseUrl: `${model.url}/v1`,
        api: 'openai-completions',
        apiKey: 'lab-key-that-opens-nothing',
        models: [{ id: 'lab-model' }],
      },
    },
  };
  await Bun.write(join(folder, 'models.json'), JSON.stringify(models));
  await Bun.write(
    join(folder, 'settings.json'),
    JSON.stringify({ defaultProvider: 'lab', defaultModel: 'lab-model' }),
  );
  const path = lab.env['PATH'] ?? '';
  lab.set({ PI_OFFLINE: '1', PI_TELEMETRY: '0', PATH: `${NODE_PATH}:${path}` });
  return {
    model,
    async open(cwd, ...args) {
      const terminal = await lab.terminal({ command: ['pi', ...args], cwd });
      await terminal.shows('lab-model');
      return terminal;
    },
  };
}
