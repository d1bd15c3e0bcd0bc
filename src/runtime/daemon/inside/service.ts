import { CONNECTOR_VERSION } from '../connector/schema.ts';
import { RequestError } from '../protocol.ts';
import type { OpHandler, SnapshotSource } from '../service.ts';
import type { Desk } from './desk.ts';
import { orderFrame } from './order.ts';
import { readInside } from './schema.ts';

/** What the way back adds to the `connector` service. */
export interface InsideOps {
  readonly ops: Readonly<Record<string, OpHandler>>;
  readonly subscriptions: Readonly<Record<string, (payload: unknown) => SnapshotSource>>;
}

const version = CONNECTOR_VERSION;

/**
 * The operations of the way back. An extension holds `attach` and reports, takes and answers on another connection;
 * a command lays an order down and watches it with `follow`.
 */
export function insideOps(desk: Desk): InsideOps {
  return {
    ops: {
      'inside-send'(payload) {
        const { order, session, parts, model } = readInside.send(payload);
        const wish = { kind: 'prompt', parts, ...(model === undefined ? {} : { model }) } as const;
        return { version, order: desk.order(order, session, wish).id };
      },
      'inside-abort'(payload) {
        const { order, session } = readInside.abort(payload);
        return { version, order: desk.order(order, session, { kind: 'abort' }).id };
      },
      'inside-approve'(payload) {
        const { order, session, requestId, decision } = readInside.approve(payload);
        return { version, order: desk.order(order, session, { kind: 'reply', requestId, decision }).id };
      },
      'inside-report'(payload) {
        desk.report(readInside.report(payload));
        return { version, ok: true };
      },
      'inside-take'(payload) {
        const { attachment, order, part } = readInside.take(payload);
        return { version, bytes: desk.take(attachment, order, part).toString('base64') };
      },
      'inside-answer'(payload) {
        desk.answer(readInside.answer(payload));
        return { version, ok: true };
      },
      'inside-part'(payload) {
        const { order, index, bytes } = readInside.part(payload);
        desk.part(order, index, Buffer.from(bytes, 'base64'));
        return { version, ok: true };
      },
      'inside-attached'(payload) {
        return { version, attached: desk.attached(readInside.attached(payload)) };
      },
    },
    subscriptions: {
      'inside-attach'(payload) {
        const hello = readInside.attach(payload);
        if (!desk.hasRoom()) throw new RequestError('too many programs are attached');
        const held = { id: '' };
        return {
          version: desk.version,
          // A client that has left meanwhile is never listened to, and so never attached.
          onChange(listener) {
            const { id, leave } = desk.attach(hello);
            held.id = id;
            const end = desk.onChange(listener);
            // The end of the connection, whoever ended it, is the end of the attachment.
            return () => {
              end();
              leave();
            };
          },
          sample: () => ({ version, attachment: held.id, orders: desk.ordersOf(held.id).map(orderFrame) }),
        };
      },
      'inside-follow'(payload) {
        const { order } = readInside.follow(payload);
        if (!desk.find(order)) throw new RequestError('unknown order');
        return {
          version: desk.version,
          onChange: desk.onChange,
          sample: () => ({ version, ...(desk.find(order) ?? { order, state: 'forgotten' }) }),
        };
      },
    },
  };
}
