import type { Lineage, SessionFacts, SessionSource } from '../../runtime/session/session.ts';
import { cleanTitle, oneLine } from '../../runtime/session/text.ts';
import { numberOf, objectOf, present, textOf } from './values.ts';

/** Facts of a session as the API, the stream and the database all tell them. Times are epoch milliseconds. */
export interface SessionInfo {
  readonly id: string;
  /** Cleaned, and none of the default ones. */
  readonly title?: string;
  readonly parentId?: string;
  readonly directory?: string;
  readonly agent?: string;
  readonly model?: string;
  readonly slug?: string;
  readonly version?: string;
  readonly createdAt?: number;
  readonly updatedAt?: number;
  readonly archivedAt?: number;
}

/** Reads a session object of the API or of an event; `undefined` if it has no id of a session. */
export function readSessionInfo(value: unknown): SessionInfo | undefined {
  const raw = objectOf(value);
  const id = textOf(raw?.['id']);
  if (!raw || !id?.startsWith('ses')) return undefined;
  const time = objectOf(raw['time']);
  const location = objectOf(raw['location']);
  return present<SessionInfo>({
    id,
    title: ownTitle(textOf(raw['title'])),
    parentId: textOf(raw['parentID']),
    directory: textOf(raw['directory']) ?? textOf(location?.['directory']),
    agent: textOf(raw['agent']),
    model: modelName(raw['model']),
    slug: textOf(raw['slug']),
    version: textOf(raw['version']),
    createdAt: numberOf(time?.['created']),
    updatedAt: numberOf(time?.['updated']),
    archivedAt: numberOf(time?.['archived']),
  });
}

/** `provider/model` of `{id, providerID}` (sessions) or `{modelID, providerID}` (messages). */
export function modelName(value: unknown): string | undefined {
  const model = objectOf(value);
  const name = textOf(model?.['id']) ?? textOf(model?.['modelID']);
  const provider = textOf(model?.['providerID']);
  if (name === undefined) return undefined;
  return oneLine(provider === undefined ? name : `${provider}/${name}`).slice(0, 200);
}

const DEFAULT_TITLE = /^(?:New|Child) session - \d{4}-\d\d-\d\dT[\d:.]+Z$/;

/**
 * OpenCode's own title of a session, cleaned. The one it gives before it has thought of one is no title: the first
 * prompt, where it is known, is better.
 */
export function ownTitle(title: string | undefined): string | undefined {
  return title === undefined || DEFAULT_TITLE.test(title) ? undefined : cleanTitle(title);
}

/** Facts for the registry. */
export function factsOf(info: SessionInfo, source: SessionSource, status?: string): SessionFacts {
  const lineage: Lineage | undefined = info.parentId ? { parentId: info.parentId } : undefined;
  return {
    ...(info.title ? { title: info.title } : {}),
    ...(info.directory ? { workDir: info.directory } : {}),
    ...(info.model ? { model: info.model } : {}),
    ...(info.createdAt === undefined ? {} : { startedAt: info.createdAt }),
    ...(info.updatedAt === undefined ? {} : { lastActivityAt: info.updatedAt }),
    ...(lineage ? { lineage } : {}),
    ...(info.archivedAt === undefined ? {} : { archived: true }),
    source,
    native: nativeOf(info, status),
  };
}

/** `{status,slug,agent,version}` with a server, the same without `status` from files (`cli-surface.md` §5). */
function nativeOf(info: SessionInfo, status: string | undefined): Readonly<Record<string, string>> {
  const native: Record<string, string> = {};
  if (status) native['status'] = status;
  if (info.slug) native['slug'] = word(info.slug);
  if (info.agent) native['agent'] = word(info.agent);
  if (info.version) native['version'] = word(info.version);
  return native;
}

/** One line of at most 120 characters; nearly all of them are, and cleaning thousands of them shows in a list's time. */
function word(text: string): string {
  const short = text.slice(0, 120);
  return /^[\x20-\x7e]*$/.test(short) ? short : oneLine(short);
}
