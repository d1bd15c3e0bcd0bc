import { isAbsolute, resolve } from 'node:path';
import type { TranscriptPort, TranscriptSeen } from '../../runtime/daemon/feeds/ports.ts';
import { systemFiles } from '../../runtime/files/file-system.ts';
import type { AdapterContext } from '../adapter.ts';
import { discoverTranscripts } from './discover.ts';
import { type ClaudeHome, claudeHomes } from './homes.ts';

type Surroundings = Pick<AdapterContext, 'env' | 'home' | 'files' | 'log'>;

/**
 * Lists Claude Code's transcripts for the daemon's discovery feed: by `stat` alone, exactly two levels deep, names
 * that are UUIDs (S-601, S-602, S-604). A folder that can't be read costs its own files.
 */
export function transcriptListing(context: Surroundings): TranscriptPort {
  const files = context.files ?? systemFiles;
  return {
    list: () =>
      projectFolders(context).flatMap((projects) => {
        const { transcripts, problems } = discoverTranscripts(files, { ...NO_HOME, projects }, () => true);
        for (const { subject, reason } of problems) context.log.debug(`transcripts: ${subject} ${reason}`);
        return transcripts.map(
          ({ sessionId, path, stat }): TranscriptSeen => ({
            id: sessionId,
            path,
            size: stat.size,
            mtimeMs: stat.mtimeMs,
          }),
        );
      }),
  };
}

const NO_HOME: Omit<ClaudeHome, 'projects'> = { root: '', sessions: '', jobs: '', roster: '' };

/**
 * Where the transcripts lie (C-204): `SHADOWOB_CONNECTOR_CLAUDE_PROJECTS_DIR` alone, if set; else below
 * `CLAUDE_CONFIG_DIR`, and below `~/.claude`, where sessions that were started without that variable stay.
 */
export function projectFolders(context: Pick<Surroundings, 'env' | 'home'>): readonly string[] {
  const named = context.env['SHADOWOB_CONNECTOR_CLAUDE_PROJECTS_DIR'];
  if (named) return [isAbsolute(named) ? named : resolve(named)];
  return claudeHomes(context.env, context.home).map((home) => home.projects);
}
