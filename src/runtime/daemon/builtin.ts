import type { Service, ServiceStatus } from './service.ts';

/** What this build is (S-309, S-326). */
export interface BuildInfo {
  readonly version: string;
  readonly commit?: string;
}

/** A service's line in `status` (S-310). */
export interface ServiceReport extends ServiceStatus {
  readonly name: string;
}

export interface BuiltinOptions {
  readonly build: BuildInfo;
  readonly pid: number;
  readonly startedAt: string;
  readonly services: () => readonly Service[];
  /** More for `ping` and `status`, such as which manager started us. */
  readonly about?: (() => Readonly<Record<string, unknown>>) | undefined;
}

/** The operations of the service itself, under the name `daemon` (S-309 … S-311), apart from `shutdown`. */
export function builtinService(options: BuiltinOptions): Service {
  const about = (): Record<string, unknown> => ({
    ...options.build,
    pid: options.pid,
    started_at: options.startedAt,
    ...options.about?.(),
  });
  return {
    name: 'daemon',
    ops: {
      ping: () => ({ pong: true, ...about() }),
      status: () => ({ services: options.services().map(report), ...about() }),
      shutdown: () => ({ stopping: true }),
    },
  };
}

/** A status that throws is a service that is not well; the others are still shown. */
function report(service: Service): ServiceReport {
  try {
    return { name: service.name, ...(service.status?.() ?? { healthy: true, summary: 'running' }) };
  } catch (error) {
    return {
      name: service.name,
      healthy: false,
      summary: error instanceof Error ? error.message : String(error),
    };
  }
}
