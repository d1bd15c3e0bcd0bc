import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import fc from 'fast-check';
import type { ControlContext } from '../../../../src/adapters/adapter.ts';
import { createClaudeDriver } from '../../../../src/adapters/claude-code/control/driver.ts';
import type { HostDriver, TurnSink } from '../../../../src/runtime/control/driver.ts';
import { run } from '../../../../src/runtime/process/spawn.ts';
import { messages, openStage, type Stage } from './stage.ts';

setDefaultTimeout(120_000);

const silent: TurnSink = {
  accepted: () => {},
  progress: () => {},
  note: () => {},
  request: () => true,
  withdrawn: () => {},
  child: () => {},
};

const held: { stage?: Stage; driver?: HostDriver } = {};

describe.skipIf(process.platform === 'win32')('text through a child’s stdin', () => {
  beforeAll(() => {
    const stage = openStage();
    const context: ControlContext = {
      env: stage.env,
      home: stage.home,
      platform: process.platform,
      now: () => Date.now(),
      connectorHome: stage.connectorHome,
      self: [],
      version: '1',
      run,
      log: { debug: () => {}, warn: () => {} },
    };
    const spec = {
      session: { runtimeId: 'claude-code', instanceId: 'transcripts', sessionId: crypto.randomUUID() },
      start: { kind: 'new' },
      workDir: stage.folder,
      approvalMs: 60_000,
      keepMs: 60_000,
      native: {},
    } as const;
    held.stage = stage;
    held.driver = createClaudeDriver(context, spec, silent);
  });
  afterAll(async () => {
    await held.driver?.close('kill');
    await held.stage?.[Symbol.asyncDispose]();
  });

  test('arrives whole, whatever it holds, one turn for each, all in one process', async () => {
    const { stage, driver } = held;
    if (!stage || !driver) throw new Error('not set up');
    const orders = new Set(['ask', 'hang', 'die', 'orphan']);
    const any = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 200 }),
      fc.string({ unit: 'grapheme', maxLength: 80 }),
      fc.constantFrom(
        '-p',
        '--resume x',
        '\u0000',
        '\n',
        '\r\n',
        '\u2028',
        '"',
        '\\',
        '{"type":"user"}\n',
        '😀'.repeat(50_000),
      ),
    );
    const sent: string[] = [];
    await fc.assert(
      fc.asyncProperty(
        any.filter((text) => !orders.has(text)),
        async (text) => {
          sent.push(text);
          const message = { id: crypto.randomUUID(), text, whenOwned: 'refuse', approvals: 'ask' } as const;
          const result = await driver.turn(message, () => false);
          expect(result).toMatchObject({ kind: 'done', outcome: 'completed', text: `${text.length} units` });
        },
      ),
      { numRuns: 60 },
    );
    expect(messages(stage)).toEqual(sent);
    expect(stage.log().filter((entry) => 'start' in entry).length).toBe(1);
  });
});
