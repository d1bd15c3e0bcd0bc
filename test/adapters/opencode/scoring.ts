/** How a state of ours is compared with a word of the keys. */
export interface Equality {
  /** From files and one-shot answers nobody can tell output from work: one class. */
  readonly streamingIsRunning: boolean;
}

/** `idle` and `unknown` are equal before a first prompt; a tool that runs is `running` in all of these keys. */
export function matches(got: string, want: string, { streamingIsRunning }: Equality): boolean {
  const plain = (state: string): string => {
    if (state === 'tool_call') return 'running';
    if (state === 'streaming' && streamingIsRunning) return 'running';
    return state === 'unknown' ? 'idle' : state;
  };
  return plain(got) === plain(want);
}

/** Counts right and wrong rows, keeps the wrong ones to show, and prints the share. */
export function createScore(mode: string) {
  const wrong: string[] = [];
  const counts = { right: 0, all: 0 };
  return {
    row(where: string, got: string, want: string, equality: Equality): void {
      counts.all += 1;
      if (matches(got, want, equality)) counts.right += 1;
      else wrong.push(`${where}: want ${want}, got ${got}`);
    },
    get wrong(): readonly string[] {
      return wrong;
    },
    get all(): number {
      return counts.all;
    },
    print(): void {
      const share = counts.all === 0 ? 0 : (counts.right / counts.all) * 100;
      console.log(`opencode, ${mode}: ${counts.right} of ${counts.all} states right (${share.toFixed(1)} %)`);
    },
  };
}

export type Score = ReturnType<typeof createScore>;
