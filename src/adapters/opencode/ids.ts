/** The wrap of the time inside an id: 48 bits hold milliseconds × 4096 plus a counter. */
const WRAP_MS = 2 ** 36;

/**
 * When OpenCode made an id of an ascending kind (`per_`, `que_`, `msg_`, `evt_`; checked on 1.18.33), epoch
 * milliseconds. The id holds only the low 36 bits of the time, so of the possible times the one nearest to
 * `near` is meant (one in 2.2 years). `undefined` for any other id; `ses_` ids count backwards and hold none.
 */
export function timeOfId(id: string, near: number): number | undefined {
  const digits = /^(?:per|que|msg|evt|prt)_([0-9a-f]{12})/.exec(id)?.[1];
  if (digits === undefined) return undefined;
  const low = Math.floor(Number.parseInt(digits, 16) / 4096);
  return low + Math.round((near - low) / WRAP_MS) * WRAP_MS;
}
