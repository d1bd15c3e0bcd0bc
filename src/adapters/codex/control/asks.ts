import type { ApprovalAnswer, Decision, PendingRequest, Question } from '../../../runtime/control.ts';
import { asFields, type Fields, listOf, numberOf, objectOf, textOf } from '../fields.ts';
import { INSTANCE_ID, RUNTIME_ID } from '../sightings.ts';
import { type Form, readForm } from './forms.ts';
import type { ServerRequest } from './rpc.ts';

/** A request of an app-server that a person may answer. */
export interface Ask {
  readonly request: ServerRequest;
  readonly pending: PendingRequest;
  /** What is sent back for an answer that `pending.allows`. */
  reply(answer: Pick<ApprovalAnswer, 'decision' | 'answers'>): unknown;
}

/** What a change of files would do, by the id of its item: it isn't in the request itself. */
export type ChangesOf = (itemId: string) => string | undefined;

/**
 * Reads a request; undefined for one that is no person's to answer (tools and tokens of other clients).
 *
 * The id that users see is ours: the server's own is good on one connection only, and two asks may share their item.
 * It is made from everything that was asked, so it names this action and no other (A2), and it stays the same when the
 * server sends a pending request again to whoever connects (A6; byte for byte in 0.171).
 */
export function readAsk(request: ServerRequest, changesOf: ChangesOf = () => undefined): Ask | undefined {
  const threadId = textOf(request.params, 'threadId');
  if (threadId === undefined) return undefined;
  const shape = shapeOf(request, changesOf);
  if (!shape) return undefined;
  const askedAt = numberOf(request.params, 'startedAtMs');
  return {
    request,
    pending: {
      requestId: requestIdOf(request),
      session: { runtimeId: RUNTIME_ID, instanceId: INSTANCE_ID, sessionId: threadId },
      ...(askedAt === undefined ? {} : { askedAt }),
      ...shape.shown,
    },
    reply: shape.reply,
  };
}

/** The id of a request, from its method and all of its parameters. */
export function requestIdOf({ method, params }: Pick<ServerRequest, 'method' | 'params'>): string {
  return new Bun.CryptoHasher('sha256')
    .update(JSON.stringify([method, params]))
    .digest('hex')
    .slice(0, 16);
}

type Shown = Pick<PendingRequest, 'kind' | 'subject' | 'detail' | 'questions' | 'allows' | 'sessionScope'>;

interface Shape {
  readonly shown: Shown;
  readonly reply: Ask['reply'];
}

function shapeOf({ method, params }: ServerRequest, changesOf: ChangesOf): Shape | undefined {
  switch (method) {
    case 'item/commandExecution/requestApproval':
      return commandShape(params);
    case 'item/fileChange/requestApproval':
      return changeShape(params, changesOf);
    case 'item/permissions/requestApproval':
      return permissionsShape(params);
    case 'item/tool/requestUserInput':
      return questionShape(params);
    case 'mcpServer/elicitation/request':
      return formShape(params);
    default:
      return undefined;
  }
}

/**
 * `decline` lets the turn go on, which is what a denial means here; `cancel` would end it. Both, and
 * `acceptForSession`, are taken although 0.171 lists neither among `availableDecisions`.
 */
const DECISIONS: Readonly<Record<string, string>> = {
  'allow-once': 'accept',
  'allow-session': 'acceptForSession',
  deny: 'decline',
};

const decided: Ask['reply'] = ({ decision }) => ({ decision: DECISIONS[decision] ?? 'decline' });

const PERMISSION: readonly Decision[] = ['allow-once', 'allow-session', 'deny'];

function commandShape(params: Fields): Shape {
  const network = objectOf(params, 'networkApprovalContext');
  const host = textOf(network, 'host');
  const command = textOf(params, 'command');
  const detail = linesOf([
    command ?? (host ? `${textOf(network, 'protocol') ?? 'network'} ${host}` : undefined),
    within(textOf(params, 'cwd')),
    host && command ? `for the network: ${host}` : undefined,
    because(params),
    extraOf(params['additionalPermissions']),
  ]);
  return {
    shown: {
      kind: 'permission',
      subject: command === undefined && host ? 'network' : 'command',
      detail,
      allows: PERMISSION,
      sessionScope: host ? `the network, for ${host}` : 'exactly this command',
    },
    reply: decided,
  };
}

function changeShape(params: Fields, changesOf: ChangesOf): Shape {
  const root = textOf(params, 'grantRoot');
  const changes = changesOf(textOf(params, 'itemId') ?? '');
  return {
    shown: {
      kind: 'permission',
      subject: 'file change',
      detail: linesOf([
        changes ?? 'a change of files, which only the terminal shows',
        root ? `and all writing below ${root}` : undefined,
        because(params),
      ]),
      allows: PERMISSION,
      sessionScope: root ? `writing below ${root}` : 'changes of the same files',
    },
    reply: decided,
  };
}

function permissionsShape(params: Fields): Shape {
  const wanted = objectOf(params, 'permissions') ?? {};
  return {
    shown: {
      kind: 'permission',
      subject: 'permissions',
      detail: linesOf([JSON.stringify(wanted), within(textOf(params, 'cwd')), because(params)]),
      allows: PERMISSION,
      sessionScope: 'these permissions',
    },
    reply: ({ decision }) => ({
      // No permission at all is how this request is refused.
      permissions: decision === 'allow-once' || decision === 'allow-session' ? present(wanted) : {},
      scope: decision === 'allow-session' ? 'session' : 'turn',
    }),
  };
}

function questionShape(params: Fields): Shape {
  const asked = listOf(params, 'questions').flatMap((one): Fields[] => {
    const fields = asFields(one);
    return fields ? [fields] : [];
  });
  const keys = asked.map((one, index) => textOf(one, 'id') ?? String(index + 1));
  const questions = asked.map(
    (one, index): Question => ({
      id: String(index + 1),
      text: textOf(one, 'question') ?? textOf(one, 'header') ?? '',
      options: listOf(one, 'options').flatMap((option) => optionOf(asFields(option))),
      multiple: false,
    }),
  );
  return {
    shown: {
      kind: 'question',
      subject: 'question',
      detail: questions.map(({ text }) => text).join('\n'),
      questions,
      allows: ['answer', 'deny'],
    },
    reply: ({ decision, answers }) => ({
      // Without answers the model is told that there are none.
      answers: Object.fromEntries(
        decision === 'answer'
          ? keys.map((key, index) => [key, { answers: answers?.[String(index + 1)] ?? [] }])
          : [],
      ),
    }),
  };
}

function optionOf(option: Fields | undefined): Question['options'] {
  const label = textOf(option, 'label');
  const description = textOf(option, 'description');
  return label === undefined ? [] : [{ label, ...(description ? { description } : {}) }];
}

/**
 * A tool server's own question (MCP), or Codex's whether a tool of it may run, which comes in the same form (0.171:
 * `_meta.codex_approval_kind`). Without fields to fill in it is a plain yes or no.
 */
function formShape(params: Fields): Shape {
  const server = textOf(params, 'serverName') ?? 'tool server';
  const message = textOf(params, 'message') ?? textOf(params, 'description');
  const form = readForm(params);
  const call = toolCallOf(objectOf(params, '_meta'));
  return {
    shown: {
      kind: form.kind === 'fields' ? 'form' : 'permission',
      subject: call ? `${server}.${call.tool}` : server,
      detail: linesOf([message, textOf(params, 'url'), call?.words]),
      ...(form.kind === 'fields' ? { questions: form.questions } : {}),
      ...(call?.forSession ? { sessionScope: `the tool ${call.tool} of ${server}` } : {}),
      allows: call?.forSession && form.kind === 'plain' ? PERMISSION : allowedBy(form),
    },
    reply: (answer) => {
      if (answer.decision === 'deny') return { action: 'decline', content: null, _meta: null };
      const content = form.kind === 'fields' ? form.contentOf(answer.answers ?? {}) : {};
      const _meta = answer.decision === 'allow-session' ? { persist: 'session' } : null;
      return { action: 'accept', content, _meta };
    },
  };
}

/** The call that would run, with all that it is given. */
function toolCallOf(
  meta: Fields | undefined,
): { readonly tool: string; readonly words: string; readonly forSession: boolean } | undefined {
  const tool = textOf(meta, 'tool_name');
  if (textOf(meta, 'codex_approval_kind') !== 'mcp_tool_call' || tool === undefined) return undefined;
  return {
    tool,
    words: `${tool} ${JSON.stringify(meta?.['tool_params'] ?? {})}`,
    forSession: listOf(meta, 'persist').includes('session'),
  };
}

function allowedBy(form: Form): readonly Decision[] {
  switch (form.kind) {
    case 'fields':
      return ['answer', 'deny'];
    case 'plain':
      return ['allow-once', 'deny'];
    case 'unknown':
      return ['deny'];
  }
}

function within(folder: string | undefined): string | undefined {
  return folder === undefined ? undefined : `in ${folder}`;
}

function because(params: Fields): string | undefined {
  const reason = textOf(params, 'reason');
  return reason === undefined ? undefined : `reason given: ${reason}`;
}

function extraOf(permissions: unknown): string | undefined {
  return asFields(permissions) === undefined ? undefined : `with ${JSON.stringify(permissions)}`;
}

function linesOf(parts: readonly (string | undefined)[]): string {
  return parts.filter((part) => part !== undefined && part !== '').join('\n');
}

/** Members that are null mean "not asked for". */
function present(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}
