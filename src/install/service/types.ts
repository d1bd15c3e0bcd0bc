import type { CommandRunner } from '../../runtime/process/types.ts';

/** What a service is made from. */
export interface ServiceSpec {
  /** Absolute program and its first arguments; the daemon's own words follow. */
  readonly program: readonly string[];
  readonly home: string;
  readonly socketPath: string;
  readonly logPath: string;
  /**
   * Also starts at login and after a failure: once a link or notifications are configured. Otherwise the first client
   * starts it.
   */
  readonly always: boolean;
  /** The user wants it to outlive the log-out; only systemd has a word for it (D5). */
  readonly linger?: boolean;
}

/** The system as service managers need it. */
export interface ServiceSystem {
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly userHome: string;
  readonly uid: number | undefined;
  readonly run: CommandRunner;
  pause(ms: number): Promise<void>;
}

/** One file that an installation consists of. */
export interface ServiceFile {
  readonly path: string;
  readonly text: string;
  readonly encoding?: 'utf16le';
}

/** What was done, a line each, and what its user must know or do. */
export interface ServiceReport {
  readonly ok: boolean;
  readonly done: readonly string[];
  readonly notes: readonly string[];
}

/** A manager that keeps the daemon for this user. */
export interface ServiceManager {
  readonly kind: 'systemd' | 'launchd' | 'windows-task';
  /** For `daemon status`: which of the two it is. */
  readonly words: string;
  files(spec: ServiceSpec): readonly ServiceFile[];
  installed(): boolean;
  /** Writes what differs and arms it; a second call changes nothing. */
  install(spec: ServiceSpec): Promise<ServiceReport>;
  /** Takes back all of it, and nothing else. */
  uninstall(spec: ServiceSpec): Promise<ServiceReport>;
  /** Lets clients no longer start it; called after `shutdown` (S-339). */
  disarm(): Promise<ServiceReport>;
}

/** A text that no unit or property list can hold (S-338). */
export class UnfitPath extends Error {
  override readonly name = 'UnfitPath';
}
