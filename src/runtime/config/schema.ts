import { z } from 'zod';
import { LOG_LEVELS } from '../daemon/log.ts';
import { NOTIFY } from '../limits.ts';
import { isTimeZone } from './quiet-hours.ts';
import { webhookProblem } from './webhook-url.ts';

/**
 * The settings of this program, all of them: the one description of `config.json`. Every key has a default, so
 * that an empty file, a missing one and one with a single key are all whole.
 */

const TIME = /^([01]\d|2[0-3]):[0-5]\d$/;
const time = z.string().regex(TIME, 'is no time of day such as "22:30"');

/** Days of the week, by the day on which a range begins. */
export const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const;

const quietRange = z
  .strictObject({
    from: time,
    to: time,
    /** The days on which the range begins; absent: every day. */
    days: z.array(z.enum(DAYS)).min(1).optional(),
    /** An IANA name; absent: this computer's. */
    timeZone: z.string().refine(isTimeZone, 'is no time zone such as "Europe/Berlin"').optional(),
  })
  .refine(({ from, to }) => from !== to, 'begins and ends at the same time');

/** The kinds of news that can be told or not. `runtimes` is about programs that come and go. */
const states = z.strictObject({
  approval: z.boolean().default(true),
  input: z.boolean().default(true),
  done: z.boolean().default(true),
  failed: z.boolean().default(true),
  runtimes: z.boolean().default(false),
});

/** Title, folder path and error text for this one sink. */
const details = z.boolean().default(false);
const seconds = (most: number, usual: number) => z.number().min(1).max(most).default(usual);

const sinks = z.strictObject({
  desktop: z.strictObject({ enabled: z.boolean().default(true), details }).prefault({}),
  terminal: z
    .strictObject({ style: z.enum(['off', 'bell', 'osc9', 'osc777']).default('off'), details })
    .prefault({}),
  command: z
    .strictObject({
      /** Program and arguments; never a shell line. Empty: no command. */
      argv: z.array(z.string().max(NOTIFY.argumentChars)).max(NOTIFY.commandArguments).default([]),
      timeoutSeconds: seconds(NOTIFY.commandMaxSeconds, NOTIFY.commandSeconds),
      details,
    })
    .prefault({}),
  webhook: z
    .strictObject({
      /** https, or http to this computer. Empty: no webhook. */
      url: z
        .string()
        .max(NOTIFY.urlChars)
        .superRefine((url, context) => {
          const problem = webhookProblem(url);
          if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
        })
        .default(''),
      timeoutSeconds: seconds(NOTIFY.webhookMaxSeconds, NOTIFY.webhookSeconds),
      details,
    })
    .prefault({}),
});

const notifications = z.strictObject({
  /** Off until their owner turns them on. */
  enabled: z.boolean().default(false),
  states: states.prefault({}),
  quietHours: z.array(quietRange).max(NOTIFY.quietRanges).default([]),
  /** How long "done" waits for background shells, minutes. */
  shellPatienceMinutes: z
    .number()
    .min(0)
    .max(24 * 60)
    .default(NOTIFY.shellPatienceMinutes),
  sinks: sinks.prefault({}),
});

/** What `config.json` may say. */
export const configSchema = z.strictObject({
  daemon: z.strictObject({ log_level: z.enum(LOG_LEVELS).default('info') }).prefault({}),
  privacy: z.strictObject({ titles: z.enum(['full', 'short', 'hidden']).default('full') }).prefault({}),
  notifications: notifications.prefault({}),
});

/** All settings, each with its value or its default. */
export type Config = z.infer<typeof configSchema>;
export type NotificationSettings = Config['notifications'];
export type QuietRange = z.infer<typeof quietRange>;
/** How titles and paths are shown to the owner. */
export type TitlePrivacy = Config['privacy']['titles'];

/** What holds without a file. */
export const DEFAULT_CONFIG: Config = configSchema.parse({});
