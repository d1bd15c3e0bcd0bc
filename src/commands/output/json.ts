import type { ConnectorError } from '../../runtime/errors.ts';
import type { Style } from './style.ts';

/** One JSON document, without its final line end: indented for a person at a terminal, compact for a program. */
export function jsonDocument(data: unknown, style: Style): string {
  return JSON.stringify(data, null, style.columns === undefined ? undefined : 2);
}

/** An error as a JSON document, on stdout like every other answer of `--json`. */
export function jsonError(error: ConnectorError): unknown {
  return {
    error: {
      kind: error.kind,
      exitCode: error.exitCode,
      message: error.message,
      ...(error.next ? { next: error.next } : {}),
    },
  };
}
