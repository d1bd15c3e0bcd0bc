import type {
  HostDriver,
  HostSpec,
  Message,
  Obstacle,
  TurnResult,
  TurnSink,
} from '../../../src/runtime/control/driver.ts';
import type { ApprovalResult, PendingRequest } from '../../../src/runtime/control.ts';
import type { KillReport } from '../../../src/runtime/process/types.ts';

export const SESSION = { runtimeId: 'test', instanceId: 'store', sessionId: 'session-1' };

export function specOf(more: Partial<HostSpec> = {}): HostSpec {
  return {
    session: SESSION,
    start: { kind: 'resume' },
    workDir: '/',
    approvalMs: 60_000,
    keepMs: 0,
    native: {},
    ...more,
  };
}

export function messageOf(text: string, more: Partial<Message> = {}): Message {
  return { id: crypto.randomUUID(), text, whenOwned: 'refuse', approvals: 'ask', ...more };
}

/** A runtime whose every move is the test's. */
export class FakeDriver implements HostDriver {
  readonly turns: { readonly text: string; end(result: TurnResult): void; accept(): void }[] = [];
  readonly answers: unknown[] = [];
  obstacle: Obstacle | undefined;
  answerResult: ApprovalResult = { kind: 'applied', detail: 'yes' };
  stopsOnInterrupt = true;
  closes: string[] = [];
  report: KillReport = { gone: true, survivors: [] };
  background = false;
  readonly sink: TurnSink;

  constructor(sink: TurnSink) {
    this.sink = sink;
  }

  async look(): Promise<Obstacle | undefined> {
    return this.obstacle;
  }

  turn(message: Message): Promise<TurnResult> {
    const { promise, resolve } = Promise.withResolvers<TurnResult>();
    const accept = () => this.sink.accepted('taken', 'process', 'go on');
    this.turns.push({ text: message.text, end: resolve, accept });
    return promise;
  }

  async open(): Promise<undefined> {}

  async answer(_request: PendingRequest, answer: unknown): Promise<ApprovalResult> {
    this.answers.push(answer);
    return this.answerResult;
  }

  async interrupt(): Promise<boolean> {
    if (this.stopsOnInterrupt) this.turns.at(-1)?.end({ kind: 'done', outcome: 'stopped' });
    return this.stopsOnInterrupt;
  }

  busy(): boolean {
    return this.background;
  }

  async close(how: 'rest' | 'kill'): Promise<KillReport> {
    this.closes.push(how);
    this.turns.at(-1)?.end({ kind: 'done', outcome: 'stopped' });
    return this.report;
  }

  /** The turn that runs now. */
  get last() {
    const turn = this.turns.at(-1);
    if (!turn) throw new Error('no turn');
    return turn;
  }
}

export function requestOf(requestId: string, more: Partial<PendingRequest> = {}): PendingRequest {
  return {
    requestId,
    session: SESSION,
    kind: 'permission',
    subject: 'Bash',
    detail: `run ${requestId}`,
    allows: ['allow-once', 'deny'],
    ...more,
  };
}

export const OWNED: Obstacle = {
  kind: 'owned',
  refusal: { reason: 'it is open in a terminal', kind: 'ownedElsewhere', next: 'close it' },
  until: 'when process 12 leaves',
};
