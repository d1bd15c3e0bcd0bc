/** Levels, from least to most urgent (S-930). */
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** What a log line may hold: ids, names, counts and outcomes; never content (S-903). */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** One named event with its fields. The names are those of S-931 … S-938. */
export type ServiceLog = (level: LogLevel, event: string, fields?: LogFields) => void;

/** Says nothing. */
export const silent: ServiceLog = () => {};

/**
 * A log that writes one line per event at or above its level: time, level, event, then `name=value`. Values with
 * blanks or control characters are quoted as JSON, so a hostile name can't forge a line.
 */
export function createLog(level: LogLevel, now: () => number, write: (line: string) => void): ServiceLog {
  const floor = LOG_LEVELS.indexOf(level);
  return (at, event, fields = {}) => {
    if (LOG_LEVELS.indexOf(at) < floor) return;
    const parts = Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => `${name}=${show(value)}`);
    write(`${[new Date(now()).toISOString(), at, event, ...parts].join(' ')}\n`);
  };
}

function show(value: string | number | boolean | undefined): string {
  const text = String(value);
  return /^[\w./:@+,%-]+$/.test(text) ? text : JSON.stringify(text);
}

/**
 * The level in force: the environment's filter wins over the settings; a word that is no level is ignored and
 * named in `warning`; without either it is `info` (S-930, C-400).
 */
export function resolveLogLevel(
  setting: string | undefined,
  filter: string | undefined,
): { readonly level: LogLevel; readonly warning?: string } {
  const asked = [filter, setting].map((word) => word?.trim().toLowerCase() || undefined);
  const known = asked.map((word) => LOG_LEVELS.find((level) => level === word));
  const bad = asked.find((word, index) => word !== undefined && known[index] === undefined);
  const level = known.find((word) => word !== undefined) ?? 'info';
  return {
    level,
    ...(bad === undefined ? {} : { warning: `unknown log level ${JSON.stringify(bad)}, using ${level}` }),
  };
}
