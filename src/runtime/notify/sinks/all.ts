import type { NotificationSettings } from '../../config/schema.ts';
import type { Scheduler } from '../../daemon/clock.ts';
import type { CommandRunner, Environment, Platform } from '../../process/types.ts';
import { commandSink } from './command.ts';
import { desktopSink } from './desktop.ts';
import type { Sink } from './sink.ts';
import { webhookSink } from './webhook.ts';

export interface SinkHost {
  readonly platform: Platform;
  readonly env: Environment;
  readonly run: CommandRunner;
  readonly scheduler: Scheduler;
  /** Name and version of this program, for webhooks. */
  readonly agent: string;
}

/** The sinks that the settings name. The terminal's is not among them: whoever has that terminal tells it. */
export function sinksOf({ sinks }: NotificationSettings, host: SinkHost): readonly Sink[] {
  const { desktop, command, webhook } = sinks;
  return [
    ...(desktop.enabled ? [desktopSink({ ...host, details: desktop.details })] : []),
    ...(command.argv.length > 0
      ? [
          commandSink({
            ...host,
            argv: command.argv,
            timeoutMs: command.timeoutSeconds * 1_000,
            details: command.details,
          }),
        ]
      : []),
    ...(webhook.url === ''
      ? []
      : [
          webhookSink({
            ...host,
            url: webhook.url,
            timeoutMs: webhook.timeoutSeconds * 1_000,
            details: webhook.details,
          }),
        ]),
  ];
}
