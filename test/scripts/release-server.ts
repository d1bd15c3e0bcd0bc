/** A release folder on loopback, with the ways in which a download goes wrong. */
import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** How one file is answered: whole, cut short of its announced length, or begun and then left hanging. */
export type Delivery = 'whole' | 'truncated' | 'stalled';

export type Release = {
  readonly url: string;
  /** File names asked for, in order. */
  readonly requests: string[];
  /** Downloads that the client has given up. */
  aborted(): number;
  put(name: string, content: string | Uint8Array, delivery?: Delivery): void;
  remove(name: string): void;
  /** Writes SHA256SUMS for all files; `wrong` names files whose sum is to be false. */
  sum(wrong?: readonly string[]): void;
  close(): Promise<void>;
};

/** Starts it on a free port. */
export async function startRelease(): Promise<Release> {
  const files = new Map<string, { bytes: Uint8Array; delivery: Delivery }>();
  const requests: string[] = [];
  const counts = { aborted: 0 };
  const server = createServer((request, response) => {
    const name = (request.url ?? '').slice(1);
    requests.push(name);
    const file = files.get(name);
    if (!file) return response.writeHead(404).end('not here');
    response.writeHead(200, { 'content-length': file.bytes.length });
    if (file.delivery === 'whole') return response.end(file.bytes);
    response.on('close', () => {
      counts.aborted += 1;
    });
    response.write(file.bytes.subarray(0, Math.floor(file.bytes.length / 2)), () => {
      if (file.delivery === 'truncated') response.destroy();
    });
  });
  await listen(server);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    aborted: () => counts.aborted,
    put: (name, content, delivery = 'whole') => {
      const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content;
      files.set(name, { bytes, delivery });
    },
    remove: (name) => {
      files.delete(name);
    },
    sum: (wrong = []) => {
      const lines = [...files]
        .filter(([name]) => name !== 'SHA256SUMS')
        .map(([name, { bytes }]) => {
          const hash = createHash('sha256').update(bytes);
          if (wrong.includes(name)) hash.update('something else');
          return `${hash.digest('hex')}  ${name}\n`;
        });
      files.set('SHA256SUMS', { bytes: new TextEncoder().encode(lines.join('')), delivery: 'whole' });
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve());
  });
}
