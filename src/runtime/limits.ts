/**
 * Every size and number that bounds what the service takes, keeps and sends, in one table (R-40, S-907, §0.3).
 * Sizes are bytes, times milliseconds, unless the name says otherwise. Plain numbers only: the hook sink imports
 * this file, and pays for everything that it imports.
 */

const KIB = 1024;
const MIB = 1024 * KIB;
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The wire between clients and the service. */
export const WIRE = {
  /** One line without its end, both directions (K-29, S-304). */
  lineBytes: MIB,
  /** Longest socket path that every system binds, exclusive (K-30, S-332). */
  socketPathBytes: 104,
  /** Connections at one time (S-337). */
  connections: 256,
  /** Requests of one connection that wait for their turn before its socket is no longer read. */
  pipelined: 64,
  /** A connection that has asked nothing for this long is closed (S-337). */
  idleMs: 60 * SECOND,
  /** A reader that takes nothing for this long is dropped (S-323). */
  stalledMs: 30 * SECOND,
  /** How long accepted requests may go on at shutdown (K-35, S-336). */
  drainMs: 5 * SECOND,
  /** A subscription takes a new sample this often without any change (K-28). */
  tickMs: 10 * SECOND,
  /** Back-off after a failed accept: first, cap, and the gap between two log lines (K-37). */
  acceptFirstMs: 5,
  acceptCapMs: SECOND,
  acceptLogGapMs: 30 * SECOND,
  /** Descriptors that clients never get, so that logs, journals and files can still be opened (S-337). */
  reservedDescriptors: 16,
} as const;

/** Strings inside payloads. Longer ones are payload errors. */
export const FIELD = {
  /** `session_id`, `agent_id`, `key`, `stamp.seq`, in characters. */
  idChars: 256,
  /** `cwd`, `transcript_path` and one window folder, in characters: `PATH_MAX` of Linux. */
  pathChars: 4_096,
  /** `model`, `repo`, `reason`, in characters. */
  nameChars: 512,
  /** Folders of one window report. */
  folders: 64,
} as const;

/** What the service remembers of sessions and windows. */
export const SESSIONS = {
  /** Awake time without a sighting after which a session is forgotten (K-01). */
  ttlMs: 300 * SECOND,
  /** Awake time that an ended session is still shown (K-02). */
  endedTtlMs: 10 * SECOND,
  /** Awake time that a window report holds (K-03). */
  windowTtlMs: 30 * SECOND,
  /** Sessions and windows at one time; a new one evicts the one that was quiet longest (K-05). */
  sessions: 512,
  windows: 256,
  /** Former owner pids kept per session (K-06). */
  replacedPids: 8,
  /** Event `seq`s kept per session (K-07). */
  recentSeqs: 32,
  /** A socket event less than this behind the newest one came late; further behind, the clock was set (K-08). */
  reorderMs: 10 * SECOND,
  /** Folders whose repository is remembered, and for how long (K-38, S-013). */
  repoCache: 256,
  repoCacheMs: MINUTE,
  /** How often owner processes are looked at (K-09). */
  pidPollMs: 10 * SECOND,
  /** How often transcripts and rollouts are listed although nothing was notified (K-10). */
  filesPollMs: 5 * SECOND,
  /** A living thread is announced again no more often than this (K-12, S-626). */
  rolloutHeartbeatMs: MINUTE,
  /** Bytes of a rollout within which its first line must end (K-13). */
  rolloutHeadBytes: MIB,
} as const;

/** The hook sink. */
export const HOOK = {
  /** Bytes of stdin that are kept; the rest is read and dropped (S-401, R-24). */
  stdinBytes: MIB,
  /** How long a reply may take when the journal holds the event already. */
  journaledWaitMs: 150,
  /** Of that, for the reply alone where the system keeps what was written for a reader that is busy. */
  journaledReplyMs: 1,
  /** The same without a journal line (K-14, S-403). */
  waitMs: 2 * SECOND,
  /** How long stdin may stay open without its end. */
  stdinMs: 2 * SECOND,
  /** Ancestors that are looked at for the owner. */
  ancestors: 3,
} as const;

/** Hook journals. */
export const JOURNAL = {
  /** The sink no longer appends to a file of this size: nobody tends it (K-21, S-507). */
  fullBytes: 512 * KIB,
  /** A file over this is compacted to about `keepBytes` (K-22, S-528). */
  compactBytes: 128 * KIB,
  keepBytes: 64 * KIB,
  /** Most bytes that one read takes (K-25, S-527). */
  readBytes: 4 * MIB,
  /** Records and files older than this are dropped (K-23). */
  ageMs: 7 * 24 * HOUR,
  /** Quiet time before a file that belongs to nobody is deleted (K-24). */
  quietMs: 2 * MINUTE,
  /** Without any proof of life a session is restored only this long after its last event (S-521). */
  unprovenMs: 5 * MINUTE,
  /** How much later than its first record a process may seem to have started (K-26). */
  startSlackMs: 2 * SECOND,
  /** Age at which a temporary file of ours counts as left behind (K-27). */
  strayMs: HOUR,
  /** How often journals are read (K-10). */
  pollMs: 5 * SECOND,
} as const;

/** Clients of the service. */
export const CLIENT = {
  /** One request, from connecting to the reply. */
  requestMs: 2 * SECOND,
  /** Reconnecting: first wait and cap, doubling, plus up to half at random (K-39). */
  reconnectFirstMs: 500,
  reconnectCapMs: 10 * SECOND,
} as const;

/** Texts that users send, see and wait for. Longer ones cross the socket in parts. */
export const TEXT = {
  /** One message to a session, UTF-8. */
  messageBytes: 4 * MIB,
  /** One part of a longer text on the socket, UTF-8: a quarter of a line, since JSON may double or triple it. */
  partBytes: 256 * KIB,
  /** A word to the model with a denial, and one answer to a question, in characters. */
  noteChars: 16 * KIB,
  /** How long a command waits for a turn to end when no other time is given. */
  waitMs: 300 * SECOND,
} as const;

/** Acting on sessions: hosts, the queue, approvals. */
export const CONTROL = {
  /** A session that we began keeps its process this long after a turn; one that we only resumed: not at all. */
  keepMs: 10 * MINUTE,
  /** The most that may be asked for instead. */
  keepMaxMs: 24 * HOUR,
  /** How long a host stays without having been given a message, and for work in the background. */
  firstMs: 15 * SECOND,
  backgroundMs: 10 * MINUTE,
  /** A request that nobody has answered is denied after this (A8). */
  approvalMs: 30 * MINUTE,
  /** A message that could not be delivered is deleted after this. */
  queueMs: 24 * HOUR,
  /** Messages that wait for one session. */
  queued: 32,
  /** How often the daemon looks for messages that nobody is there to deliver. */
  deliverMs: 5 * SECOND,
  /** How often a waiting host looks whether the owner has left. */
  ownerPollMs: 500,
  /** How long a host may take until it answers. */
  hostStartMs: 15 * SECOND,
  /** How long a runtime may take to say that it has a message; a huge session is read first (X10). */
  acceptMs: 120 * SECOND,
  /** The same for an answer to a request, and for an interrupt to have ended the turn. */
  ackMs: 3 * SECOND,
  interruptMs: 10 * SECOND,
  /** How long a terminal may take to take a message from Codex's own queue, into which it looks every 10 s (0.171). */
  queueTakenMs: 30 * SECOND,
  /** How long a process may take to leave by itself once it was told that nothing more comes. */
  leaveMs: 10 * SECOND,
  /** How long one question for news is held open by a host. */
  holdMs: 20 * SECOND,
  /** How long an ending host waits until those who follow have the last events. */
  farewellMs: 2 * SECOND,
  /** Events kept of one message; older progress goes first. */
  events: 2_000,
  /** Messages whose events a host still knows. */
  tickets: 64,
  /** Text of one progress event, of a final text, and of what a request would do, UTF-8. */
  progressBytes: 16 * KIB,
  finalBytes: 128 * KIB,
  detailBytes: 16 * KIB,
  /** Requests of one session that wait at one time, and ids remembered of those that are settled. */
  requests: 32,
  settled: 256,
  /** Events of one reply, as JSON. */
  replyBytes: 512 * KIB,
  /** One line that a runtime writes; longer ones are skipped and counted. */
  streamLineBytes: 64 * MIB,
  /** From this size on a push into a session warns first (X10). */
  hugeSessionBytes: 64 * MIB,
} as const;

/** Our own settings file. */
export const CONFIG = {
  /** A larger file is no settings file. */
  fileBytes: 256 * KIB,
  /** How often the daemon looks whether it has changed. */
  lookMs: 2 * SECOND,
} as const;

/** Telling the owner. */
export const NOTIFY = {
  /** How long an end or a wait must stand before it is told. */
  settleMs: 2 * SECOND,
  /** Two feeds date one wait at most this far apart: it is the same wait. */
  sameWaitMs: SECOND,
  /** A turn that was seen open before a restart and ended this long ago is still told; later it is old news. */
  resumeMs: 10 * MINUTE,
  /** How often it is looked again while quiet hours hold something back. */
  quietLookMs: 30 * SECOND,
  /** How long "done" waits for background shells, minutes. */
  shellPatienceMinutes: 10,
  /** Sessions in the ledger, and how long one that nothing happened in is kept. */
  ledgerSessions: 2_000,
  ledgerMs: 30 * 24 * HOUR,
  /** Bytes of the ledger file that are read. */
  ledgerBytes: 2 * MIB,
  /** Notices that wait for one sink; what comes beyond is dropped, logged and counted. */
  queued: 64,
  /** A command's time, seconds, and what may be asked for; bytes of what it says that are kept for the log. */
  commandSeconds: 10,
  commandMaxSeconds: 120,
  commandKeepBytes: 4 * KIB,
  commandArguments: 64,
  argumentChars: 4_096,
  /** One attempt of a webhook, seconds; the pauses before its second and third attempt. */
  webhookSeconds: 5,
  webhookMaxSeconds: 60,
  webhookPausesMs: [2 * SECOND, 10 * SECOND],
  /** The pauses before a notice that no way could deliver is tried again (N5); in all less than {@link resumeMs}. */
  againMs: [30 * SECOND, 2 * MINUTE, 6 * MINUTE],
  urlChars: 2_048,
  /** The desktop's notifier program. */
  desktopMs: 10 * SECOND,
  quietRanges: 16,
  /** A folder's name and a title, in graphemes. */
  folderChars: 40,
  titleChars: 80,
} as const;

/** The line for prompts, bars and menus. */
export const STATUS_LINE = {
  /** From connecting to the answer; without one the documented fallback is printed. */
  answerMs: 100,
  /** Sessions in one answer, those that need their user first. */
  sessions: 20,
} as const;

/** The wrappers around a runtime's program (K-14, K-15, K-18 … K-20, K-31 … K-34). */
export const WRAP = {
  /** A line of the stream from this size on is passed on and not looked at (K-31, S-704). */
  lineBytes: MIB,
  /** Lines, and their bytes, that wait to be looked at; what comes beyond is passed on and not looked at (S-704). */
  teeLines: 256,
  teeBytes: 16 * MIB,
  /** Requests for a permission that are remembered (K-32). */
  asks: 64,
  /** One report to the service, and what the wrapper's own end may wait for the last ones (K-14, S-705). */
  reportMs: 2 * SECOND,
  /** Reports that wait for one that is under way; the oldest go first. */
  reports: 32,
  /** How often a state that is not idle is said again (K-15, S-716). */
  keepAliveMs: 30 * SECOND,
  /** Diagnostic records that wait to be written, and how long the end waits for them (K-34, S-740). */
  records: 128,
  recordsMs: 200,
  /** How often a summary is written while the program runs (S-741). */
  summaryMs: 60 * SECOND,
  /** Codex: until its server listens, between two looks, and for one connection or answer (K-18 … K-20). */
  serverReadyMs: 10 * SECOND,
  pollMs: SECOND,
  answerMs: 5 * SECOND,
  /** Looks that may fail one after the other before the terminal goes on unobserved (K-20, S-766). */
  failedPolls: 3,
  /** From the server's TERM to its KILL (K-20, S-766). */
  stopMs: 2 * SECOND,
} as const;

/** Programs with our extension inside, and the orders that they take. */
export const INSIDE = {
  /** Programs at one time; sessions that one of them holds, and permissions that wait in it. */
  attachments: 64,
  sessions: 256,
  requests: 32,
  /** Events of the runtime in one report. */
  events: 64,
  /** What a permission would allow, in characters; longer ones say that they are cut. */
  detailChars: 16 * KIB,
  /** The final text of a turn, in characters. */
  finalChars: 128 * KIB,
  /** One part of a text, bytes, and how many there may be: four mebibytes of text. */
  partBytes: 256 * KIB,
  parts: 16,
  /** Texts that wait for their order. */
  texts: 16,
  /** Orders in all, and of one program that are not over. */
  orders: 256,
  openOrders: 32,
  /** How long a program may take to accept an order, and how long one that is over is remembered. */
  acceptMs: 15 * SECOND,
  keepMs: MINUTE,
} as const;
