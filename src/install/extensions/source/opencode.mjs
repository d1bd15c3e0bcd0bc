import { createLink, later, safely } from './link.mjs';

const ADDRESS = '@ADDRESS@';
const GENERATION = 0;
const FLUSH_MS = 15;
const CALL_MS = 10_000;
const IDLE_MS = 250;
const STOP_MS = 10_000;
const OUTPUT_MS = 1_000;
const EVENTS = 64;
const PENDING_EVENTS = 512;
const SESSIONS = 256;
const REQUESTS = 32;
const DETAIL_CHARS = 16_000;
const FINAL_CHARS = 100_000;
const MATTERS = /^(?:session|message|permission|question)\.|^server\.instance\./;

/** Tells the connector's daemon what this OpenCode does, and takes its owner's orders from there. */
export const ShadowobConnector = async ({ client }) => safely(() => start(client)) ?? {};

function start(client) {
  const sessions = new Map();
  const busy = new Map();
  const requests = new Map();
  const users = new Set();
  const output = new Map();
  const prompts = [];
  const aborts = [];
  const replies = [];
  const state = { events: [], cancel: undefined, dirty: false };

  const call = (run) =>
    new Promise((resolve) => {
      const cancel = later(CALL_MS, () => resolve({ error: 'no answer' }));
      Promise.resolve()
        .then(run)
        .then(
          (result) => resolve(result ?? {}),
          (thrown) => resolve({ error: thrown ?? 'failed' }),
        )
        .finally(cancel);
    });

  const rootOf = (id) => {
    let at = id;
    for (let step = 0; step < 8; step += 1) at = sessions.get(at)?.parent ?? at;
    return at;
  };

  const standing = () => ({
    sessions: [...sessions.keys()].slice(-SESSIONS),
    requests: [...requests.values()]
      .slice(0, REQUESTS)
      .map(({ asker: _asker, event: _event, ...one }) => one),
  });

  const flush = () => {
    state.cancel = undefined;
    if (!link.connected) {
      state.events = [];
      return;
    }
    // What is left out would leave a wrong state standing: then it is all said anew.
    if (state.events.length > PENDING_EVENTS) {
      state.events = [];
      return link.reset();
    }
    const events = state.events.splice(0, EVENTS);
    const what = { events, ...(state.dirty ? standing() : {}) };
    state.dirty = false;
    if (!link.report(what)) return link.reset();
    if (state.events.length > 0) soon();
  };

  const soon = () => {
    state.cancel ??= later(FLUSH_MS, () => safely(flush));
  };

  const send = (event) => {
    if (!link.connected) return;
    state.events.push(event);
    soon();
  };

  const changed = () => {
    state.dirty = true;
    soon();
  };

  const see = (id, parent) => {
    if (typeof id !== 'string' || !id.startsWith('ses')) return;
    const known = sessions.get(id);
    if (known && (parent === undefined || known.parent === parent)) return;
    sessions.set(id, { parent: parent ?? known?.parent });
    if (sessions.size > SESSIONS) sessions.delete(sessions.keys().next().value);
    changed();
  };

  const rests = (id) => {
    busy.delete(id);
    for (const [requestId, request] of requests) {
      // An abort leaves its requests behind, and nobody waits for their answer.
      if (request.asker !== id) continue;
      requests.delete(requestId);
      changed();
    }
    for (const one of aborts.filter(({ id: own }) => own === id)) {
      aborts.splice(aborts.indexOf(one), 1);
      one.say({ state: 'done', outcome: 'stopped', confirmed: true });
    }
    later(IDLE_MS, () => safely(() => settle(id)));
  };

  /** A turn of ours has ended: its own last message says how. */
  const settle = async (id) => {
    if (busy.has(id)) return;
    const mine = prompts.filter((one) => one.id === id && one.message !== undefined);
    if (mine.length === 0) return;
    for (const one of mine) prompts.splice(prompts.indexOf(one), 1);
    const { data } = await call(() => client.session.messages({ path: { id }, query: { limit: 20 } }));
    const list = Array.isArray(data) ? data : [];
    for (const { message, say } of mine) {
      const answers = list.filter(({ info }) => info?.role === 'assistant');
      const answer = answers.findLast(({ info }) => info.parentID === message) ?? answers.at(-1);
      say({ state: 'done', ...endOf(answer) });
    }
  };

  const hear = (type, properties) => {
    const info = properties.info;
    const id = properties.sessionID ?? properties.part?.sessionID ?? info?.sessionID ?? info?.id;
    if (type === 'session.deleted') {
      sessions.delete(id);
      for (const [key, one] of requests) if (one.asker === id) requests.delete(key);
      return changed();
    }
    see(id, info?.parentID && type.startsWith('session.') ? info.parentID : undefined);
    if (type === 'session.status') {
      const word = properties.status?.type;
      if (word === 'busy' || word === 'retry') busy.set(id, properties.status);
      else rests(id);
    }
    if (type === 'session.idle') rests(id);
    if (type === 'session.error') failed(id, properties.error);
    if (type === 'message.updated' && info?.role === 'user') asked(id, info.id);
    if (type === 'permission.asked') {
      requests.set(properties.id, requestOf(properties, rootOf(id)));
      changed();
    }
    if (type === 'permission.replied') {
      const requestId = properties.requestID ?? properties.permissionID;
      if (requests.delete(requestId)) changed();
      for (const one of replies.filter(({ request }) => request === requestId)) {
        replies.splice(replies.indexOf(one), 1);
        one.say({ state: 'done', confirmed: true, detail: 'OpenCode has the answer' });
      }
    }
  };

  /** The prompt's own message: the proof that OpenCode has it. */
  const asked = (id, message) => {
    if (users.has(message)) return;
    users.add(message);
    if (users.size > SESSIONS) users.delete(users.values().next().value);
    const one = prompts.find((prompt) => prompt.id === id && prompt.message === undefined);
    if (!one) return;
    one.message = message;
    one.say({
      state: 'accepted',
      detail: one.queued ? 'taken behind the turn that runs' : 'OpenCode has begun with it',
    });
  };

  const failed = (id, error) => {
    const one = prompts.find((prompt) => prompt.id === id && prompt.message === undefined);
    if (!one || busy.has(id)) return;
    prompts.splice(prompts.indexOf(one), 1);
    one.say({ state: 'refused', kind: 'refused', detail: wordsOf(error), next: 'Look at its terminal.' });
  };

  const order = async (one, say) => {
    const id = one.sessionId;
    const refuse = (kind, detail, next) => say({ state: 'refused', kind, detail, next });
    if (one.kind === 'prompt') {
      const prompt = { id, say, message: undefined, queued: busy.has(id) };
      prompts.push(prompt);
      const [providerID, ...rest] = (one.model ?? '').split('/');
      const model = rest.length > 0 ? { model: { providerID, modelID: rest.join('/') } } : {};
      const body = { parts: [{ type: 'text', text: one.text }], ...model };
      const { error } = await call(() => client.session.promptAsync({ path: { id }, body }));
      const at = prompts.indexOf(prompt);
      if (!error || at < 0) return;
      prompts.splice(at, 1);
      return refuse('refused', `OpenCode did not take it: ${wordsOf(error)}`, 'Look at its terminal.');
    }
    if (one.kind === 'abort') {
      if (!busy.has(id)) {
        return refuse(
          'refused',
          'no turn is running in this session',
          'See: shadowob-connector session-list',
        );
      }
      const abort = { id, say };
      aborts.push(abort);
      say({ state: 'accepted', detail: 'OpenCode was asked to stop' });
      later(STOP_MS, () => {
        const at = aborts.indexOf(abort);
        if (at < 0) return;
        aborts.splice(at, 1);
        say({ state: 'done', confirmed: false });
      });
      await call(() => client.session.abort({ path: { id } }));
      return;
    }
    if (one.kind !== 'reply')
      return refuse('unsupported', 'this is not known here', 'Update the plugin: install-hooks');
    const request = requests.get(one.requestId);
    const response = { 'allow-once': 'once', 'allow-session': 'always', deny: 'reject' }[one.decision];
    if (!request || !response) {
      return refuse(
        'notFound',
        `no request ${one.requestId} waits for an answer`,
        'See: shadowob-connector session-approve',
      );
    }
    const waiting = { request: one.requestId, say };
    replies.push(waiting);
    const path = { id: request.asker, permissionID: one.requestId };
    const { error } = await call(() =>
      client.postSessionIdPermissionsPermissionId({ path, body: { response } }),
    );
    const at = replies.indexOf(waiting);
    if (at < 0) return;
    if (error) {
      replies.splice(at, 1);
      return refuse('refused', `OpenCode did not take it: ${wordsOf(error)}`, 'Answer it in its terminal.');
    }
    later(IDLE_MS, () => {
      const left = replies.indexOf(waiting);
      if (left < 0) return;
      replies.splice(left, 1);
      say({
        state: 'done',
        confirmed: false,
        detail: 'OpenCode took it and has not said that it is applied',
      });
    });
  };

  const attached = async () => {
    state.events = [];
    changed();
    // What runs already was told before anybody listened.
    const { data } = await call(() => client.session.status());
    for (const [sessionID, status] of Object.entries(data ?? {})) {
      busy.set(sessionID, status);
      see(sessionID);
      send({ type: 'session.status', properties: { sessionID, status } });
    }
    for (const { event } of requests.values()) send(event);
  };

  const link = createLink({
    address: ADDRESS,
    hello: () => ({
      runtimeId: 'opencode',
      instanceId: 'local-data',
      pid: process.pid,
      generation: GENERATION,
      can: ['prompt', 'abort', 'approve'],
    }),
    attached,
    order,
  });

  return {
    event: async ({ event } = {}) => {
      safely(() => {
        const type = event?.type;
        if (typeof type !== 'string' || !MATTERS.test(type)) return;
        const properties = event.properties ?? {};
        if (isOutput(type, properties) && !mayPass(output, type, properties)) return;
        hear(type, properties);
        send({ type, properties: strip(type, properties) });
      });
    },
    dispose: async () => void safely(() => link.close()),
  };
}

function isOutput(type, { part }) {
  if (type === 'message.part.delta') return true;
  return type === 'message.part.updated' && part?.type === 'text' && part.time?.end === undefined;
}

/** Output comes by the hundred: the first piece of a part says that it streams, and one a second that it still does. */
function mayPass(output, type, properties) {
  const part = `${type} ${properties.partID ?? properties.part?.id ?? properties.messageID}`;
  const now = Date.now();
  if (now - (output.get(part) ?? 0) < OUTPUT_MS) return false;
  output.set(part, now);
  if (output.size > SESSIONS) output.delete(output.keys().next().value);
  return true;
}

/** What a state is made of, and nothing of the conversation. */
function strip(type, properties) {
  const { id, sessionID, messageID, partID, requestID, directory, field, status, info, part, error, tool } =
    properties;
  const kept = { id, sessionID, messageID, partID, requestID, directory, field, status, tool };
  if (type.startsWith('permission.')) kept.permission = properties.permission;
  if (info) kept.info = type.startsWith('message.') ? message(info) : session(info);
  if (part) kept.part = piece(part);
  if (error) kept.error = problem(error);
  return kept;
}

function session({ id, parentID, directory, title, version, agent, model, slug, time }) {
  return { id, parentID, directory, title, version, agent, model, slug, time };
}

function message({ id, sessionID, parentID, role, time, finish, error }) {
  return { id, sessionID, parentID, role, time, finish, ...(error ? { error: problem(error) } : {}) };
}

function piece({ id, sessionID, messageID, type, callID, tool, time, state }) {
  return {
    id,
    sessionID,
    messageID,
    type,
    callID,
    tool,
    time,
    ...(state ? { state: { status: state.status } } : {}),
  };
}

function problem({ name, data }) {
  const { message: words, statusCode, isRetryable } = data ?? {};
  return { name, data: { message: String(words ?? '').slice(0, 400), statusCode, isRetryable } };
}

function wordsOf(error) {
  const words = error?.data?.message ?? error?.message ?? error?.name ?? error;
  return String(typeof words === 'string' ? words : 'it gave no reason').slice(0, 200);
}

function requestOf(properties, sessionId) {
  const { id, sessionID, permission, patterns, metadata, always } = properties;
  const list = Array.isArray(patterns) ? patterns.join('\n') : '';
  const whole = [metadata?.command, metadata?.filepath, metadata?.diff].filter(
    (one) => typeof one === 'string',
  );
  const detail = whole.length > 0 ? whole.join('\n') : list;
  const scope = Array.isArray(always) ? always.join(', ') : '';
  return {
    requestId: id,
    sessionId,
    asker: sessionID,
    subject: String(permission ?? 'permission').slice(0, 200),
    detail: detail.slice(0, DETAIL_CHARS),
    ...(detail.length > DETAIL_CHARS ? { detailCut: true } : {}),
    askedAt: Date.now(),
    allows: scope ? ['allow-once', 'allow-session', 'deny'] : ['allow-once', 'deny'],
    ...(scope ? { sessionScope: scope.slice(0, 1_000) } : {}),
    event: { type: 'permission.asked', properties: strip('permission.asked', properties) },
  };
}

/** How a turn ended, by its last message (1.18.33). */
function endOf(answer) {
  const info = answer?.info;
  const parts = Array.isArray(answer?.parts) ? answer.parts : [];
  const text = parts
    .flatMap((one) => (one?.type === 'text' ? [one.text] : []))
    .join('\n')
    .slice(0, FINAL_CHARS);
  const words = text ? { text } : {};
  if (!info) return { confirmed: false };
  if (info.error?.name === 'MessageAbortedError') return { outcome: 'stopped', confirmed: true, ...words };
  if (info.error) return { outcome: 'failed', confirmed: true, error: wordsOf(info.error), ...words };
  if (info.finish === 'length') return { outcome: 'limited', confirmed: true, ...words };
  // A refused call ends the turn without another word; so does a stop in the middle of a retry.
  const stopped = info.finish === 'tool-calls' || (info.finish === undefined && parts.length === 0);
  return { outcome: stopped ? 'stopped' : 'completed', confirmed: true, ...words };
}
