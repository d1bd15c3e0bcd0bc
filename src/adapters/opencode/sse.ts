/** Takes a piece of an event stream and gives the data of the events that it completes. */
export interface SseParser {
  push(chunk: Uint8Array): readonly string[];
  /** Events that were too long to keep. */
  readonly dropped: number;
}

/** Longest event that is kept, characters; a message with a large summary is some 100 KB. */
export const EVENT_LIMIT = 8 * 1024 * 1024;

/**
 * Reads `text/event-stream`: events are separated by an empty line, their data lines are joined, comments and
 * other fields are left out. Pieces may end anywhere, also inside a character or between CR and LF; one that is
 * too long is forgotten as it comes.
 */
export function createSseParser(limit: number = EVENT_LIMIT): SseParser {
  const decoder = new TextDecoder();
  const state = { line: '', data: [] as string[], size: 0, over: false, dropped: 0, afterCr: false };

  const endEvent = (): readonly string[] => {
    const { data, over } = state;
    if (over) state.dropped += 1;
    Object.assign(state, { data: [], size: 0, over: false });
    return data.length > 0 && !over ? [data.join('\n')] : [];
  };

  const endLine = (): readonly string[] => {
    const { line } = state;
    state.line = '';
    if (line === '') return endEvent();
    if (!state.over && line.startsWith('data:')) state.data.push(line.slice(line[5] === ' ' ? 6 : 5));
    return [];
  };

  const add = (text: string): void => {
    state.size += text.length;
    if (state.size > limit) Object.assign(state, { over: true, data: [] });
    // A line that is given up still must not look empty, or its event would end here.
    state.line = state.over ? 'x' : state.line + text;
  };

  return {
    push(chunk) {
      const decoded = decoder.decode(chunk, { stream: true });
      const text = state.afterCr && decoded.startsWith('\n') ? decoded.slice(1) : decoded;
      if (decoded !== '') state.afterCr = decoded.endsWith('\r');
      const pieces = text.split(/\r\n|\n|\r/);
      return pieces.flatMap((piece, index) => {
        if (piece !== '') add(piece);
        return index < pieces.length - 1 ? endLine() : [];
      });
    },
    get dropped() {
      return state.dropped;
    },
  };
}
