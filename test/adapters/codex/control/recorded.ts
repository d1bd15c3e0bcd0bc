import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export type Json = Record<string, unknown>;

const RECORDINGS = join(import.meta.dir, '..', '..', '..', 'recordings', 'codex');
const FILE = join(RECORDINGS, 'app-server-stdio', 'app-server.jsonl');

/** The thread of the recording, to be replaced by a test's own. */
export const RECORDED_THREAD = '01a22e1c-f00f-7a80-b439-0a57aa746ccb';

interface Message {
  readonly out: boolean;
  readonly line: string;
  readonly value: Json;
}

/** One recorded turn: what the server said from its beginning to its end, as the bytes that it wrote. */
export interface RecordedTurn {
  readonly turnId: string;
  readonly prompt: string;
  readonly messages: readonly Message[];
}

const whole: readonly Message[] = readFileSync(FILE, 'utf8')
  .trim()
  .split('\n')
  .map((line) => {
    const { dir, msg } = JSON.parse(line) as { dir: string; msg: Json };
    // The recorder's frame is cut off; what stood on the wire stays byte for byte.
    return { out: dir === '->', value: msg, line: line.slice(line.indexOf('"msg":') + 6, -1) };
  });

/** What the real server answered to the request of this id. */
export function recordedAnswer(id: number): string {
  const found = whole.find(({ out, value }) => !out && value['id'] === id && value['method'] === undefined);
  if (!found) throw new Error(`no answer ${id}`);
  return found.line;
}

/** All turns that were started with `turn/start`, in order. */
export const recordedTurns: readonly RecordedTurn[] = whole.flatMap((message, index) => {
  if (!message.out || message.value['method'] !== 'turn/start') return [];
  const { id, params } = message.value as { id: number; params: { input: { text: string }[] } };
  const answer = whole.findIndex(
    (one) => !one.out && one.value['id'] === id && one.value['result'] !== undefined,
  );
  const turn = (whole[answer]?.value['result'] as { turn: { id: string } } | undefined)?.turn;
  if (!turn) return [];
  const end = whole.findIndex(
    ({ value }, at) => at > index && value['method'] === 'turn/completed' && turnOf(value) === turn.id,
  );
  const messages = whole.slice(index + 1, end + 1).filter(({ out, value }) => {
    const isReply = out && value['result'] !== undefined;
    return isReply || (!out && value['method'] !== undefined);
  });
  return [{ turnId: turn.id, prompt: params.input[0]?.text ?? '', messages }];
});

function turnOf(value: Json): unknown {
  return (value['params'] as { turn?: { id?: string } } | undefined)?.turn?.id;
}

/** The recorded turns with this prompt. */
export const turnsWith = (prompt: string): readonly RecordedTurn[] =>
  recordedTurns.filter((turn) => turn.prompt === prompt);

/** What a server said to the recorder beside a terminal, in order; its own looks around are left out. */
export function overheard(scenario: string): readonly Json[] {
  return readFileSync(join(RECORDINGS, scenario, 'app-server.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { msg?: Json }).msg ?? {})
    .filter((msg) => msg['method'] !== undefined);
}
