import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { readBusEvent } from '../../../src/adapters/opencode/bus.ts';
import { parseHead } from '../../../src/adapters/opencode/database.ts';
import { applyEvent } from '../../../src/adapters/opencode/events.ts';
import { readSessionInfo } from '../../../src/adapters/opencode/info.ts';
import { isBusy, type LiveSession, liveClaim, stateOfLive } from '../../../src/adapters/opencode/live.ts';
import { tailOf } from '../../../src/adapters/opencode/remote.ts';
import { newestTurn, readMessage, readPart, turnClaim } from '../../../src/adapters/opencode/rows.ts';
import { hasOpenTurn } from '../../../src/runtime/session/state.ts';

const AT = 1_796_069_000_000;
const id = fc.constantFrom('msg_1', 'msg_2', 'msg_3');
const about = (more: Record<string, unknown>) => ({ sessionID: 'ses_a', ...more });

/** Events of one session in any order, as a bus would never send them. */
const event = fc.oneof(
  fc
    .constantFrom('busy', 'idle', 'retry')
    .map((type) => ({ type: 'session.status', properties: about({ status: { type } }) })),
  fc.constant({ type: 'session.created', properties: { info: { id: 'ses_a', directory: '/d' } } }),
  fc.constant({ type: 'session.deleted', properties: { info: { id: 'ses_a' } } }),
  fc
    .constantFrom('APIError', 'MessageAbortedError')
    .map((name) => ({ type: 'session.error', properties: about({ error: { name } }) })),
  fc
    .constantFrom('per_1', 'per_2')
    .map((request) => ({ type: 'permission.asked', properties: about({ id: request, permission: 'bash' }) })),
  fc
    .constantFrom('per_1', 'per_2')
    .map((requestID) => ({ type: 'permission.replied', properties: about({ requestID }) })),
  fc
    .tuple(id, fc.constantFrom('user', 'assistant'), fc.option(fc.nat(9)))
    .map(([message, role, completed]) => ({
      type: 'message.updated',
      properties: {
        info: about({
          id: message,
          role,
          time: { created: AT, ...(completed === null ? {} : { completed: AT + completed }) },
        }),
      },
    })),
  fc.constant({ type: 'message.part.delta', properties: about({}) }),
);

describe('one session of one process', () => {
  test('whatever order events come in: open only while busy, and an end never before its turn', () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 40 }), (events) => {
        const walk = { session: undefined as LiveSession | undefined };
        for (const [index, one] of events.entries()) {
          walk.session = applyEvent(walk.session, one, AT + index);
          const { session } = walk;
          if (!session) continue;
          const state = stateOfLive(session);
          expect(state !== undefined && hasOpenTurn(state)).toBe(isBusy(session));
          const { openedAt, endedAt } = session.turn;
          if (openedAt !== undefined && endedAt !== undefined)
            expect(endedAt).toBeGreaterThanOrEqual(openedAt);
          const says = liveClaim(session, 'f', 'o')?.says;
          // At rest and without a turn of its own it can say nothing of anybody's.
          const proofOnly = state?.kind === 'idle' && openedAt === undefined;
          expect(says).toEqual(proofOnly ? { kind: 'silent' } : (state as never));
        }
      }),
    );
  });
});

describe('anything else', () => {
  test('no JSON makes a reader throw', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const wrapped = {
          id: 'ses_a',
          role: 'assistant',
          type: 'tool',
          tool: 'x',
          state: a,
          time: b,
          error: a,
          info: b,
          parts: a,
        };
        for (const value of [
          a,
          b,
          wrapped,
          { payload: { type: 'message.updated', properties: { info: wrapped } } },
        ]) {
          const read = readBusEvent(value);
          if (read)
            applyEvent(undefined, { ...read, properties: { ...read.properties, sessionID: 'ses_a' } }, AT);
          readSessionInfo(value);
          const message = readMessage('msg_1', 1, 2, value);
          const part = readPart(3, value);
          const turn = message && newestTurn([message], part ? [part] : []);
          if (turn) turnClaim(turn, 'alive', 'f', AT);
          tailOf([value]);
        }
      }),
    );
  });

  test('nor does half a part', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(200), (text, cut) => {
        const head = JSON.stringify({
          type: 'tool',
          tool: 'bash',
          state: { status: 'running', input: { command: text } },
        });
        const read = readPart(1, parseHead(head.slice(0, cut)));
        if (cut >= 60) expect(read?.tool?.call.name).toBe('bash');
      }),
    );
  });
});
