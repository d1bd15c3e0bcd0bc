/** Starts the service as a process, and ends it however a test wants. */
import { join } from 'node:path';
import type { Cleanup } from './harness.ts';

const FIXTURE = join(import.meta.dir, 'fixtures', 'daemon.ts');

export interface DaemonProcess {
  readonly said: string;
  readonly pid: number;
  /** Ends it without a chance to do anything. */
  kill(): Promise<void>;
  readonly exited: Promise<number>;
}

export async function startDaemonProcess(
  cleanup: Cleanup,
  socketPath: string,
  logFile = '',
): Promise<DaemonProcess> {
  const child = Bun.spawn([process.execPath, FIXTURE, socketPath, logFile], {
    stdout: 'pipe',
    stderr: 'inherit',
  });
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await child.exited;
  };
  cleanup.add(kill);
  const { value } = await child.stdout.getReader().read();
  return { said: new TextDecoder().decode(value).trim(), pid: child.pid, kill, exited: child.exited };
}
