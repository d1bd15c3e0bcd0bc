import { Buffer } from 'node:buffer';
import { connect } from 'node:net';

const LINE_BYTES = 1_048_576;
const REQUEST_MS = 2_000;
const BACKOFF_FIRST_MS = 500;
const BACKOFF_CAP_MS = 10_000;
const REFUSED_MS = 60_000;
const QUEUED = 32;
const KEPT_ORDERS = 256;

/** A timer that never keeps the program alive. */
export function later(ms, run) {
  const timer = setTimeout(run, ms);
  timer.unref?.();
  return () => clearTimeout(timer);
}

/** Never lets anything of ours reach the program, not even an error. */
export function safely(run) {
  try {
    const result = run();
    if (result && typeof result.then === 'function') return result.then(undefined, () => undefined);
    return result;
  } catch {
    return undefined;
  }
}

/** One connection of JSON lines. `line` gets each parsed line, `closed` is called exactly once. */
function open(address, first, { line, closed }) {
  const state = { rest: [], size: 0, over: false };
  const socket = connect(address);
  socket.unref();
  const end = () => {
    if (state.over) return;
    state.over = true;
    socket.destroy();
    closed();
  };
  const feed = (text) => {
    const value = safely(() => JSON.parse(text));
    if (typeof value !== 'object' || value === null || typeof value.ok !== 'boolean') return end();
    line(value);
  };
  socket.on('connect', () => socket.write(`${JSON.stringify(first)}\n`));
  socket.on('data', (bytes) => {
    let from = 0;
    for (let at = bytes.indexOf(10); at >= 0 && !state.over; at = bytes.indexOf(10, from)) {
      const whole = Buffer.concat([...state.rest, bytes.subarray(from, at)]);
      state.rest = [];
      state.size = 0;
      from = at + 1;
      feed(whole.toString('utf8'));
    }
    if (state.over) return;
    state.rest.push(bytes.subarray(from));
    state.size += bytes.length - from;
    if (state.size > LINE_BYTES) end();
  });
  socket.on('error', end);
  socket.on('end', end);
  socket.on('close', end);
  return end;
}

/** One request on a connection of its own. Gives the reply, or undefined; never rejects, never takes longer than 2 s. */
export function ask(address, service, op, payload) {
  return new Promise((resolve) => {
    safely(() => {
      const held = { end: () => {}, cancel: () => {} };
      const done = (reply) => {
        held.cancel();
        resolve(reply);
        held.end();
      };
      held.cancel = later(REQUEST_MS, () => done(undefined));
      held.end = open(address, { service, op, payload }, { line: done, closed: () => done(undefined) });
    }) ?? undefined;
  });
}

/** Runs one job after the other; what comes while as many as may wait do so is dropped, and that is said. */
export function createQueue(limit = QUEUED) {
  const state = { waiting: 0, last: Promise.resolve() };
  return {
    push(job) {
      if (state.waiting >= limit) return false;
      state.waiting += 1;
      const over = () => {
        state.waiting -= 1;
      };
      state.last = state.last.then(job, job).then(over, over);
      return true;
    },
    /** Resolves when all is done, or after so many milliseconds; only this keeps the program alive so long. */
    drained(ms) {
      return new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        state.last.then(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    },
  };
}

/**
 * The standing connection to the daemon: attaches, takes orders, reports. Where there is no daemon it tries again, ever
 * more seldom, and the program notices nothing.
 */
export function createLink({ address, hello, attached, order }) {
  const state = { id: undefined, end: () => {}, cancel: () => {}, closed: false, waitMs: BACKOFF_FIRST_MS };
  const seen = new Set();
  const queue = createQueue();
  const answers = createQueue(KEPT_ORDERS);

  const again = (ms) => {
    if (state.closed) return;
    state.cancel = later(Math.round(ms * (1 + Math.random() / 2)), dial);
  };

  const lost = () => {
    state.id = undefined;
    again(state.waitMs);
    state.waitMs = Math.min(state.waitMs * 2, BACKOFF_CAP_MS);
  };

  const take = ({ attachment, orders }) => {
    if (typeof attachment !== 'string' || !Array.isArray(orders)) return state.end();
    if (state.id !== attachment) {
      state.id = attachment;
      state.waitMs = BACKOFF_FIRST_MS;
      safely(attached);
    }
    for (const one of orders) {
      if (typeof one?.order !== 'string' || seen.has(one.order)) continue;
      seen.add(one.order);
      if (seen.size > KEPT_ORDERS) seen.delete(seen.values().next().value);
      safely(() => fulfil(attachment, one));
    }
  };

  const dial = () => {
    if (state.closed) return;
    const held = { cancel: () => {} };
    // Somebody who listens and says nothing is no daemon of ours.
    held.cancel = later(REQUEST_MS, () => state.id === undefined && state.end());
    const request = { service: 'connector', op: 'inside-attach', payload: { version: 1, ...hello() } };
    const opened = safely(() =>
      open(address, request, {
        line(reply) {
          held.cancel();
          if (reply.ok && typeof reply.payload === 'object' && reply.payload !== null)
            return take(reply.payload);
          // A daemon that does not know us: another version, which an update will replace.
          state.waitMs = REFUSED_MS;
          state.end();
        },
        closed() {
          held.cancel();
          lost();
        },
      }),
    );
    if (opened) state.end = opened;
    else again(BACKOFF_CAP_MS);
  };

  const fulfil = async (attachment, one) => {
    const say = (answer) =>
      answers.push(async () => {
        await ask(address, 'connector', 'inside-answer', { attachment, order: one.order, ...answer });
      });
    const text = one.kind === 'prompt' ? await fetchText(attachment, one) : '';
    // Withdrawn, or the daemon has gone: then it must not be done either.
    if (text === undefined) return;
    await safely(() => order({ ...one, text }, say));
  };

  const fetchText = async (attachment, { order: id, parts }) => {
    const pieces = [];
    for (let part = 0; part < parts; part += 1) {
      const reply = await ask(address, 'connector', 'inside-take', { attachment, order: id, part });
      if (!reply?.ok || typeof reply.payload?.bytes !== 'string') return undefined;
      pieces.push(Buffer.from(reply.payload.bytes, 'base64'));
    }
    return Buffer.concat(pieces).toString('utf8');
  };

  dial();
  return {
    /** True while a daemon of ours is connected. */
    get connected() {
      return state.id !== undefined;
    },
    /** Says what is held, what waits, and what happened; false where it could not even be queued. */
    report(what) {
      const attachment = state.id;
      if (attachment === undefined) return false;
      return queue.push(async () => {
        await ask(address, 'connector', 'inside-report', { attachment, ...what });
      });
    },
    /** Begins anew with a fresh connection, where something was left out. */
    reset: () => state.end(),
    close() {
      state.closed = true;
      state.cancel();
      state.end();
    },
  };
}
