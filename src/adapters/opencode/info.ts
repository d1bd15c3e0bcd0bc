import type { Lineage, SessionFacts, SessionSource } from '../../runtime/session/session.ts';
import { cleanTitle, oneLine } from '../../runtime/session/text.ts';
import { numberOf, objectOf, present, textOf } from './values.ts';

/** Facts of a session as the API, the stream and the database all tell them. Times are epoch milliseconds. */
export interface SessionInfo {
  readonly id: string;
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
    title: textOf(raw['title']),
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

/** True for the title that OpenCode gives before it has thought of one. */
export function isDefaultTitle(title: string): boolean {
  return DEFAULT_TITLE.test(title);
}

/** Facts for the registry. A default title is no title: the first prompt, where known, is a better one. */
export function factsOf(info: SessionInfo, source: SessionSource, status?: string): SessionFacts {
  const title = info.title === undefined || isDefaultTitle(info.title) ? undefined : cleanTitle(info.title);
  const lineage: Lineage | undefined = info.parentId ? { parentId: info.parentId } : undefined;
  return {
    ...(title ? { title } : {}),
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

/** `{status,slug,agent,version}` with a server, `{agent,slug,version}` without (`cli-surface.md` §5). */
function nativeOf(info: SessionInfo, status: string | undefined): Readonly<Record<string, string>> {
  const fields = { status, slug: info.slug, agent: info.agent, version: info.version };
  return Object.fromEntries(
    Object.entries(fields).flatMap(([key, value]) => (value ? [[key, oneLine(value).slice(0, 120)]] : [])),
  );
}
