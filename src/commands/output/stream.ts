import { type ByteSink, sinkOf } from '../../runtime/process/in-place.ts';

/** Our own stdout for bytes that are another program's: passed on as they are, at the reader's pace (S-702). */
export function stdoutSink(): ByteSink {
  return sinkOf(Bun.stdout.writer());
}
