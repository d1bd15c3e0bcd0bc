import { join } from 'node:path';
import type { Lab } from './lab.ts';
import { startAnthropic } from './models/anthropic.ts';
import type { Model } from './models/server.ts';
import type { Terminal } from './terminal.ts';

/** Claude Code 2.1.332 in a lab, with a model of its own. */
export interface Claude {
  readonly model: Model;
  /** Opens the terminal program in a folder that is trusted, and waits for its prompt. */
  open(folder: string, ...args: string[]): Promise<Terminal>;
  /** The same without the wait: for dialogs at start. */
  launch(folder: string, ...args: string[]): Promise<Terminal>;
}

const KEY = 'sk-ant-api03-lab-key-that-opens-nothing-at-all';

/** `trusted`: the folders that the user has said yes to. */
export async function prepareClaude(lab: Lab, trusted: readonly string[]): Promise<Claude> {
  const model = lab.model(startAnthropic);
  lab.set({
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: KEY,
    DISABLE_AUTOUPDATER: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  });
  const projects = trusted.map((folder) => [folder, { hasTrustDialogAccepted: true }]);
  const global = {
    hasCompletedOnboarding: true,
    theme: 'dark',
    projects: Object.fromEntries(projects),
    customApiKeyResponses: { approved: [KEY.slice(-20)], rejected: [] },
  };
  await Bun.write(join(lab.home, '.claude.json'), JSON.stringify(global));
  const launch = (folder: string, ...args: string[]) =>
    lab.terminal({ command: ['claude', '--permission-mode', 'default', ...args], cwd: folder });
  return {
    model,
    launch,
    async open(folder, ...args) {
      const terminal = await launch(folder, ...args);
      await terminal.shows('for shortcuts');
      return terminal;
    },
  };
}
