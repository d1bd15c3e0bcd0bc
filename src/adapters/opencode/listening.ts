import { errorCode } from '../../runtime/files/file-system.ts';

const LOOPBACK = /^(127(\.\d{1,3}){3}|localhost|\[::1\])$/;
/** A loopback port answers at once or not at all; who doesn't say no in this time is asked in earnest. */
const KNOCK_MS = 250;

/**
 * Knocks at a loopback port. True only when the system itself says that nobody is there: anything else (another
 * host, a full queue, no answer in time) is for the real request to find out. Costs a third of a millisecond, where
 * the HTTP client costs 16 at its first use.
 */
export async function nobodyListens(url: URL): Promise<boolean> {
  if (!LOOPBACK.test(url.hostname)) return false;
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  const knock = Bun.connect({
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port,
    socket: { data() {} },
  }).then(
    (socket) => {
      socket.end();
      return false;
    },
    (error: unknown) => errorCode(error) === 'ECONNREFUSED',
  );
  const clock: { timer?: Timer } = {};
  const late = new Promise<boolean>((resolve) => {
    clock.timer = setTimeout(() => resolve(false), KNOCK_MS);
  });
  try {
    return await Promise.race([knock, late]);
  } finally {
    clearTimeout(clock.timer);
  }
}
