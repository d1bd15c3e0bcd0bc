import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import type { Lab } from './lab.ts';
import { until } from './until.ts';

/** One thing that the product told its owner, as the command of the owner's got it. */
export interface Told {
  readonly id: string;
  readonly event: string;
  readonly to: string;
  readonly sessionId: string;
}

/** The owner's ear: a command that writes down what it is given. */
export interface Ear {
  /** All that was told so far, in order. */
  told(): Promise<readonly Told[]>;
  /** Waits until this was told of a session after the `skip` first things, and returns it. */
  hears(event: string, sessionId: string, times?: number): Promise<Told>;
}

/** Turns notifications on, with a command as the only way out. */
export async function listen(lab: Lab): Promise<Ear> {
  const log = join(lab.home, 'told.ndjson');
  const script = join(lab.home, 'told.sh');
  await Bun.write(script, `#!/bin/sh\ncat >> '${log}'\n`);
  await chmod(script, 0o700);
  const set = async (key: string, value: string) => {
    const answer = await lab.connector.run('config', 'set', key, value);
    if (answer.code !== 0) throw new Error(`config set ${key}: ${answer.stdout}${answer.stderr}`);
  };
  await set('notifications.sinks.desktop.enabled', 'false');
  await set('notifications.sinks.command.argv', JSON.stringify([script]));
  await set('notifications.enabled', 'true');
  const told = async (): Promise<readonly Told[]> => {
    const file = Bun.file(log);
    const text = (await file.exists()) ? await file.text() : '';
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => toTold(JSON.parse(line)))
      .filter((one) => one.event.startsWith('connector.session.'));
  };
  return {
    told,
    hears: (event, sessionId, times = 1) =>
      until(
        `${event} of ${sessionId}, ${times} times`,
        async () =>
          (await told()).filter((one) => one.event === event && one.sessionId === sessionId)[times - 1],
        { explain: async () => JSON.stringify(await told()) },
      ),
  };
}

function toTold(value: Readonly<Record<string, unknown>>): Told {
  const word = (key: string) => String(value[key]);
  return { id: word('id'), event: word('event'), to: word('to'), sessionId: word('sessionId') };
}
