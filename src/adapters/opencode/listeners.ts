import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** A TCP socket that waits for connections. */
export interface Listener {
  readonly port: number;
  readonly address: string;
  /** The user that made it. */
  readonly uid: number;
  readonly inode: string;
}

/** State 0A of `/proc/net/tcp`. */
const LISTEN = '0A';

/** Parses `/proc/net/tcp` or `tcp6`; lines that don't fit are skipped. Addresses are in text form. */
export function parseListeners(text: string): readonly Listener[] {
  return text
    .split('\n')
    .slice(1)
    .filter((line) => line.includes(` ${LISTEN} `))
    .flatMap((line) => {
      const [, local, , state, , , , uid, , inode] = line.trim().split(/\s+/);
      const [address, port] = local?.split(':') ?? [];
      if (state !== LISTEN || !address || !port || !inode || inode === '0') return [];
      return [{ port: Number.parseInt(port, 16), address: readAddress(address), uid: Number(uid), inode }];
    });
}

/** The kernel prints each 32-bit word in the machine's order, which is little-endian wherever Bun runs. */
function readAddress(hex: string): string {
  const bytes = hex.match(/.{8}/g)?.flatMap((word) => [...(word.match(/../g) ?? [])].reverse()) ?? [];
  if (bytes.length === 4) return bytes.map((byte) => Number.parseInt(byte, 16)).join('.');
  if (hex === '0'.repeat(32)) return '::';
  const mapped = /^0{20}ffff/i.test(bytes.join(''));
  if (mapped)
    return bytes
      .slice(12)
      .map((byte) => Number.parseInt(byte, 16))
      .join('.');
  return bytes.join('') === `${'0'.repeat(31)}1` ? '::1' : 'other';
}

/** All listening sockets of this network namespace; `undefined` where there is no `/proc` to tell. */
export function listListeners(procRoot: string): readonly Listener[] | undefined {
  const texts = ['tcp', 'tcp6'].flatMap((name) => {
    try {
      return [readFileSync(`${procRoot}/net/${name}`, 'utf8')];
    } catch {
      // No /proc, or IPv6 is off: nothing is to be found there.
      return [];
    }
  });
  return texts.length === 0 ? undefined : texts.flatMap(parseListeners);
}

/** Inodes of the sockets that a process has open; empty if it is another user's or has gone. */
export function socketInodes(pid: number, procRoot: string): ReadonlySet<string> {
  const folder = `${procRoot}/${pid}/fd`;
  try {
    return new Set(readdirSync(folder).flatMap((fd) => socketInode(`${folder}/${fd}`) ?? []));
  } catch {
    // Not ours to look into: nothing is known of its ports.
    return new Set();
  }
}

function socketInode(path: string): string | undefined {
  try {
    return /^socket:\[(\d+)\]$/.exec(readlinkSync(path))?.[1];
  } catch {
    // Closed between the listing and this look.
    return undefined;
  }
}

/** Where to connect to reach a listener from this computer; `undefined` for an address of another interface. */
export function loopbackUrl(listener: Pick<Listener, 'address' | 'port'>): string | undefined {
  if (listener.address === '::1') return `http://[::1]:${listener.port}`;
  const reachable =
    listener.address.startsWith('127.') || listener.address === '0.0.0.0' || listener.address === '::';
  if (!reachable) return undefined;
  const host = listener.address.startsWith('127.') ? listener.address : '127.0.0.1';
  return `http://${host}:${listener.port}`;
}

/** How long a loopback connection may take, milliseconds: the kernel accepts it, however busy the program is. */
const CONNECT_MS = 250;

/**
 * Whether somebody listens on a port of 127.0.0.1, where the sockets can't be listed. Windows repeats a refused
 * connection for up to two seconds, which a list command would wait for at every call.
 */
export async function isListening(port: number, timeoutMs = CONNECT_MS): Promise<boolean> {
  // Loaded here, since it takes 3 ms of a start and Linux never gets here.
  const { connect } = await import('node:net');
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port });
    const end = (listens: boolean): void => {
      clearTimeout(clock);
      socket.destroy();
      resolve(listens);
    };
    const clock = setTimeout(() => end(false), timeoutMs);
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}
