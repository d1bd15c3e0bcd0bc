import { labelOf } from '../../adapters/catalog.ts';
import type { ControlEvent, PendingRequest } from '../../runtime/control.ts';
import { oneLine } from '../../runtime/session/text.ts';
import { age, spanWords } from './age.ts';
import { paint, type Style } from './style.ts';

/** What people read of an event: progress goes to stderr, the final text alone to stdout. */
export interface Printed {
  readonly out?: string;
  readonly err?: string;
}

/** Turns the events of one message into what people read. */
export type EventPrinter = (event: ControlEvent, style: Style) => Printed;

/**
 * A printer for one message. The newest text is held back until something follows it: at the end it is the final
 * text, which is printed once, on stdout.
 */
export function createEventPrinter(): EventPrinter {
  const held: { text?: string; accepted?: true } = {};
  const flush = (): string | undefined => {
    const { text } = held;
    delete held.text;
    return text;
  };
  return (event, style) => {
    const before = event.type === 'done' ? finalHeld(flush(), event.text) : flush();
    if (event.type === 'progress' && event.text !== undefined && event.doing === 'running') {
      held.text = event.text;
    }
    if (event.type === 'accepted') held.accepted = true;
    const { out, err } = print(event, style, held.accepted === true);
    const lines = [before === undefined ? undefined : paint(style, 'dim', safeLines(before)), err];
    const said = lines.filter((line): line is string => line !== undefined).join('\n');
    return { ...(out === undefined ? {} : { out }), ...(said === '' ? {} : { err: said }) };
  };
}

/** The held text, unless the end says the same. */
function finalHeld(held: string | undefined, final: string | undefined): string | undefined {
  return held !== undefined && held.trim() === final?.trim() ? undefined : held;
}

function print(event: ControlEvent, style: Style, accepted: boolean): Printed {
  switch (event.type) {
    case 'queued':
      return {
        err: `${paint(style, 'yellow', 'queued')}: ${oneLine(event.reason)}${behindLine(event.behind)}`,
      };
    case 'note':
      return { err: paint(style, 'dim', `note: ${oneLine(event.text)}`) };
    case 'accepted':
      return { err: acceptedLines(event, style) };
    case 'progress':
      if (event.doing === 'tool') return { err: paint(style, 'dim', `tool: ${event.tool ?? ''}`) };
      if (event.doing === 'retrying') return { err: paint(style, 'yellow', event.text ?? 'retrying') };
      return {};
    case 'request':
      return { err: requestText(style, event.request, event.at) };
    case 'resolved':
      return { err: paint(style, 'dim', `request ${event.requestId}: ${event.decision}`) };
    case 'done':
      return doneText(event, style);
    case 'left':
      return { err: leftText(event.reason, accepted) };
    case 'refused':
      return {};
  }
}

function behindLine(behind: { readonly requestId: string; readonly subject: string } | undefined): string {
  if (!behind) return '';
  return `\nanswer it: shadowob-connector session-approve ${behind.requestId} --allow`;
}

function acceptedLines(event: Extract<ControlEvent, { type: 'accepted' }>, style: Style): string {
  const { session, detail, resume } = event;
  const head = `${paint(style, 'green', 'accepted')}: ${labelOf(session.runtimeId)} session ${session.sessionId}`;
  const lines = [head, detail, ...(resume ? [`go on in a terminal: ${oneLine(resume)}`] : [])];
  return lines.join('\n');
}

function doneText(event: Extract<ControlEvent, { type: 'done' }>, style: Style): Printed {
  const look = event.outcome === 'completed' ? 'green' : event.outcome === 'stopped' ? 'yellow' : 'red';
  const notes = (event.notes ?? []).map((note) => `note: ${oneLine(note)}`);
  const err = [paint(style, look, `turn ${event.outcome}`), ...notes].join('\n');
  return { err, ...(event.text === undefined ? {} : { out: safeLines(event.text) }) };
}

function leftText(reason: Extract<ControlEvent, { type: 'left' }>['reason'], accepted: boolean): string {
  const goesOn = accepted
    ? 'the turn goes on; stop it with session-abort'
    : 'the message still waits; withdraw it with session-abort';
  switch (reason) {
    case 'followed long enough':
      return `not followed any longer: ${goesOn}`;
    case 'caller left':
      return `left: ${goesOn}`;
    case 'host lost':
      return 'the process of ours that ran it has ended: look at the session with session-show';
  }
}

/** A request as people read it: what exactly would happen, and how to answer. */
export function requestText(style: Style, request: PendingRequest, now: number): string {
  const { kind, subject, session, requestId } = request;
  const words = {
    permission: 'wants to use',
    plan: 'asks to follow its plan',
    question: 'asks',
    form: 'asks',
  };
  const head = `${labelOf(session.runtimeId)} ${words[kind]}${kind === 'permission' ? ` ${subject}` : ''}`;
  const times = [
    request.askedAt === undefined ? undefined : `asked ${age(request.askedAt, now)} ago`,
    request.expiresAt === undefined
      ? undefined
      : `denied in ${spanWords(Math.max(0, request.expiresAt - now))}`,
  ].filter((part) => part !== undefined);
  return [
    `${paint(style, 'yellow', head)}  ${paint(style, 'dim', times.join(', '))}`.trimEnd(),
    `  request ${requestId}, session ${session.sessionId}`,
    ...(request.questions ? request.questions.flatMap(questionLines) : indented(request)),
    ...answerLines(request).map((line) => paint(style, 'dim', `  ${line}`)),
  ].join('\n');
}

function indented({ detail, detailCut }: PendingRequest): readonly string[] {
  const lines = safeLines(detail)
    .split('\n')
    .map((line) => `    ${line}`);
  return detailCut ? [...lines, '    (cut: there is more of it)'] : lines;
}

function questionLines(question: NonNullable<PendingRequest['questions']>[number]): readonly string[] {
  return [
    `    ${question.id}. ${oneLine(question.text)}${question.multiple ? ' (several)' : ''}`,
    ...question.options.map(
      ({ label, description }) =>
        `       - ${oneLine(label)}${description ? `: ${oneLine(description)}` : ''}`,
    ),
  ];
}

function answerLines({ requestId, allows, sessionScope, questions }: PendingRequest): readonly string[] {
  const command = `shadowob-connector session-approve ${requestId}`;
  const several = (questions?.length ?? 0) > 1;
  return [
    ...(allows.includes('allow-once') ? [`${command} --allow`] : []),
    ...(allows.includes('allow-session')
      ? [`${command} --allow-session   (allows for this session: ${oneLine(sessionScope ?? 'the same')})`]
      : []),
    ...(allows.includes('answer')
      ? [several ? `${command} --answers '{"1":["…"],"2":["…"]}'` : `${command} --answer "…"`]
      : []),
    ...(allows.includes('deny') ? [`${command} --deny --note "…"`] : []),
  ];
}

/** Text of several lines, each safe to print on any terminal (O4); indentation stays. */
export function safeLines(text: string): string {
  return text
    .split(/\r\n|\r|\n/)
    .map((line) => {
      const indent = /^[ \t]*/.exec(line)?.[0].replaceAll('\t', '  ') ?? '';
      return (indent + oneLine(line)).trimEnd();
    })
    .join('\n');
}
