import { ask, createLink, createQueue, later, safely } from './link.mjs';

const ADDRESS = '@ADDRESS@';
const GENERATION = 0;
const AGAIN_MS = 30_000;
const SHUTDOWN_MS = 1_500;
const QUEUE_LOOK_MS = 150;
const FINAL_CHARS = 100_000;

/** Reports what this pi does to the connector's daemon, and takes its owner's orders from there. */
// biome-ignore lint/style/noDefaultExport: pi loads the default export.
export default function shadowobConnector(pi) {
  safely(() => start(pi));
}

function start(pi) {
  const state = {
    ctx: undefined,
    session: undefined,
    last: undefined,
    running: false,
    dialogs: 0,
    end: undefined,
    model: undefined,
    link: undefined,
    cancel: () => {},
  };
  /** Prompts of ours: handed to pi, and from `begun` on the turn that runs. */
  const prompts = [];
  const aborts = [];
  const queue = createQueue();

  const post = (op, payload) =>
    queue.push(async () => {
      await ask(ADDRESS, 'sessions', op, payload);
    });

  const tell = (word, force = false) => {
    if (!state.session || (state.last === word && !force)) return;
    state.last = word;
    const { id, file, cwd } = state.session;
    const model = state.ctx?.model?.id ?? state.model;
    post('observe', {
      session_id: id,
      agent: 'pi',
      event: { stream_state: word },
      ...(typeof cwd === 'string' ? { cwd } : {}),
      ...(typeof file === 'string' ? { transcript_path: file } : {}),
      ...(typeof model === 'string' ? { model } : {}),
    });
  };

  const present = () => (state.running ? 'working' : 'idle');
  const repeat = () => {
    state.cancel();
    state.cancel = later(AGAIN_MS, () => {
      if (state.last) tell(state.last, true);
      repeat();
    });
  };

  const hold = () => state.link?.report({ sessions: state.session ? [state.session.id] : [], requests: [] });

  const order = (one, say) => {
    const refuse = (kind, detail, next) => say({ state: 'refused', kind, detail, next });
    if (one.sessionId !== state.session?.id) {
      return refuse(
        'notFound',
        'this pi has another session open now',
        'See: shadowob-connector session-list',
      );
    }
    if (one.kind === 'prompt') return prompt(one, say, refuse);
    if (one.kind === 'abort') return abort(say, refuse);
    return refuse('unsupported', 'pi has no permissions to answer', 'Answer the dialog in its terminal.');
  };

  const prompt = (one, say, refuse) => {
    if (one.model !== undefined) {
      return refuse('unsupported', 'the model of an open pi is chosen in it', 'Send it without --model.');
    }
    const busy = state.running || state.ctx?.isIdle?.() === false;
    const entry = { text: one.text, say, begun: false, accepted: false };
    prompts.push(entry);
    const gone = () => {
      const at = prompts.indexOf(entry);
      if (at >= 0) prompts.splice(at, 1);
    };
    const failed = (thrown) => {
      gone();
      refuse(
        'refused',
        `pi did not take it: ${String(thrown?.message ?? thrown).slice(0, 200)}`,
        'Look at its terminal.',
      );
    };
    try {
      const result = pi.sendUserMessage(one.text, busy ? { deliverAs: 'followUp' } : undefined);
      result?.then?.(undefined, failed);
    } catch (thrown) {
      return failed(thrown);
    }
    if (!busy) return;
    later(QUEUE_LOOK_MS, () => {
      const queued = !entry.accepted && prompts.includes(entry) && state.ctx?.hasPendingMessages?.() === true;
      if (queued) accept(entry, 'queued by pi behind the turn that runs');
    });
  };

  const accept = (entry, detail) => {
    if (entry.accepted) return;
    entry.accepted = true;
    entry.say({ state: 'accepted', detail });
  };

  const abort = (say, refuse) => {
    if (state.dialogs > 0) {
      return refuse(
        'refused',
        'a dialog of an extension waits for its answer',
        'Answer it in its terminal first.',
      );
    }
    if (!state.running && state.ctx?.isIdle?.() !== false) {
      return refuse('refused', 'no turn is running in this session', 'See: shadowob-connector session-list');
    }
    aborts.push(say);
    say({ state: 'accepted', detail: 'pi was asked to stop' });
    state.ctx?.abort?.();
  };

  /** pi gives a message back as it begins with it: that is the proof that it has it. */
  const heard = (message) => {
    if (message?.role === 'assistant') {
      state.end = message;
      state.model = typeof message.model === 'string' ? message.model : state.model;
    }
    if (message?.role !== 'user') return;
    const text = textOf(message.content);
    const entry = prompts.find((one) => !one.begun && one.text === text);
    if (!entry) return;
    entry.begun = true;
    accept(entry, 'pi has begun with it');
  };

  const settle = (aborted) => {
    const outcome = aborted ? 'stopped' : outcomeOf(state.end);
    const text = textOf(state.end?.content).slice(0, FINAL_CHARS);
    const error = outcome === 'failed' ? String(state.end?.errorMessage ?? '').slice(0, 400) : '';
    for (const entry of prompts.splice(0)) {
      if (entry.begun) {
        const more = { ...(text ? { text } : {}), ...(error ? { error } : {}) };
        entry.say({ state: 'done', outcome, confirmed: true, ...more });
      } else if (aborted && entry.accepted) {
        const notes = [
          'it was queued when the turn was stopped: pi put it into its input box and did not run it',
        ];
        entry.say({ state: 'done', outcome: 'stopped', confirmed: true, notes });
      } else prompts.push(entry);
    }
    for (const say of aborts.splice(0)) say({ state: 'done', outcome, confirmed: true });
  };

  const on = (name, run) =>
    safely(() =>
      pi.on(name, (event, ctx) => {
        if (ctx) state.ctx = ctx;
        return safely(() => run(event ?? {}, ctx));
      }),
    );

  const works = () => {
    state.running = true;
    if (state.dialogs === 0) tell('working');
  };

  on('session_start', (_event, ctx) => {
    const id = ctx?.sessionManager?.getSessionId?.();
    if (typeof id !== 'string' || id === '') return;
    const file = ctx.sessionManager.getSessionFile?.();
    Object.assign(state, {
      session: { id, file, cwd: ctx.cwd ?? process.cwd() },
      running: false,
      dialogs: 0,
    });
    tell('idle', true);
    repeat();
    state.link ??= createLink({
      address: ADDRESS,
      hello: () => ({
        runtimeId: 'pi',
        instanceId: 'transcripts',
        pid: process.pid,
        generation: GENERATION,
        can: ['prompt', 'abort'],
      }),
      attached() {
        if (state.last) tell(state.last, true);
        hold();
      },
      order,
    });
    hold();
  });
  on('before_agent_start', works);
  on('agent_start', works);
  on('turn_start', works);
  on('tool_execution_start', works);
  on('message_start', ({ message }) => heard(message));
  on('message_end', ({ message }) => heard(message));
  on('agent_settled', ({ aborted }) => {
    state.running = false;
    if (state.dialogs === 0) tell('idle');
    settle(aborted === true);
  });
  on('ui_prompt_start', () => {
    state.dialogs += 1;
    tell('waiting_for_input');
  });
  on('ui_prompt_end', () => {
    state.dialogs = Math.max(0, state.dialogs - 1);
    if (state.dialogs === 0) tell(present());
  });
  on('session_shutdown', ({ reason }) => {
    if (!state.session) return undefined;
    state.cancel();
    post('end', { session_id: state.session.id, ...(typeof reason === 'string' ? { reason } : {}) });
    Object.assign(state, { session: undefined, last: undefined });
    // Another session of this pi begins with a start of its own.
    state.link?.close();
    state.link = undefined;
    return queue.drained(SHUTDOWN_MS);
  });
}

function outcomeOf(message) {
  return (
    { stop: 'completed', length: 'limited', error: 'failed', aborted: 'stopped' }[message?.stopReason] ??
    'completed'
  );
}

function textOf(content) {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .flatMap((one) => (one?.type === 'text' && typeof one.text === 'string' ? [one.text] : []))
    .join('\n');
}
