import type { Consent, HooksContext, HooksPlan, Integration } from '../../install/hooks/integration.ts';
import { commitAll } from '../hooks-change.ts';
import { type Deed, type Finding, holds, mayHold, type Sofar, type Step } from './step.ts';

/** The step that puts our hooks, or our extension, into one runtime. */
export const hooksId = (integration: Integration): string => `hooks:${integration.id}`;
/** The step that has a runtime trust them. */
export const trustId = (integration: Integration): string => `trust:${integration.id}`;

/** The option of the plan under which a runtime says what only its user may allow, whether asked for or not. */
export const CONSENT_OPTIONS = { 'trust-codex': true } as const;

/**
 * For each runtime its hooks, and for one that runs only what it was told to trust that trust, as a question of its own
 * (R-23).
 */
export function hooksSteps(list: readonly Integration[], context: HooksContext): readonly Step[] {
  return list.flatMap((integration) => [hooksStep(integration, context), trustStep(integration, context)]);
}

function hooksStep(integration: Integration, context: HooksContext): Step {
  return {
    id: hooksId(integration),
    title: `${partOf(integration)} for ${integration.label}`,
    command: `install-hooks --runtime ${integration.id}`,
    undo: `uninstall-hooks --runtime ${integration.id}`,
    look: async () => findingOf(integration, await integration.planInstall(context)),
  };
}

const EXTENDED: readonly string[] = ['opencode', 'pi'];

/** OpenCode and pi load a file of ours; the others run a command of ours. */
const partOf = ({ id }: Integration): string => (EXTENDED.includes(id) ? 'the extension' : 'hooks');

function findingOf(integration: Integration, plan: HooksPlan): Finding {
  switch (plan.kind) {
    case 'absent':
      return { kind: 'none' };
    case 'refused':
      return { kind: 'refused', says: [plan.message, ...plan.byHand], problem: 'configRefused' };
    case 'nothing':
      return { kind: 'already', says: [...plan.files, ...plan.notes] };
    case 'changes':
      return {
        kind: 'offer',
        question: {
          text: `Install ${partOf(integration)} for ${integration.label}?`,
          reason: `Its sessions then report by themselves what they do, at once. ${plan.changes
            .map(({ path, does }) => `${path}: ${does}`)
            .join('; ')}.`,
          fallback: true,
          diff: plan.changes.map(({ diff }) => diff.trimEnd()).join('\n'),
        },
        accept: async () => carryOut(plan),
      };
  }
}

function carryOut(plan: Extract<HooksPlan, { kind: 'changes' }>): Deed {
  const { files, problem } = commitAll(plan.changes);
  const says = files.flatMap(({ path, does, backup }) => [
    `${path}: ${does}`,
    ...(backup === undefined ? [] : [`As it was before: ${backup}`]),
  ]);
  if (problem !== undefined) {
    return { result: 'failed', says: [...says, ...plan.notes, problem], problem: 'configRefused' };
  }
  return { result: 'done', says: [...says, ...plan.notes, ...plan.afterwards] };
}

function trustStep(integration: Integration, context: HooksContext): Step {
  return {
    id: trustId(integration),
    title: `the trust of ${integration.label}`,
    command: `install-hooks --runtime ${integration.id} --trust-codex`,
    // What a runtime trusts is worth nothing without the hooks that it is about.
    undo: `uninstall-hooks --runtime ${integration.id}`,
    look: (sofar) => lookAtTrust(integration, context, sofar),
  };
}

async function lookAtTrust(integration: Integration, context: HooksContext, sofar: Sofar): Promise<Finding> {
  const hooks = sofar.get(hooksId(integration));
  if (!mayHold(hooks)) return { kind: 'none' };
  const plan = await integration.planInstall(context);
  const consent = plan.kind === 'changes' || plan.kind === 'nothing' ? plan.consent : undefined;
  if (consent === undefined) return { kind: 'none' };
  if (holds(hooks)) {
    const { trusted } = await integration.status(context);
    if (trusted === 'yes' || trusted === 'unneeded') return { kind: 'already', says: [] };
  }
  return {
    kind: 'offer',
    question: {
      text: consent.question,
      reason:
        'Until then it runs none of them, and says nothing about it. It is your word, so it is asked alone.',
      fallback: false,
    },
    declined: consent.declined,
    accept: () => give(consent),
  };
}

async function give(consent: Consent): Promise<Deed> {
  const outcome = await consent.give();
  // The runtime wrote it into its own settings, and only the runtime takes it out of there (T3).
  const stays = 'It stays in the runtime’s own settings when the hooks go, and means nothing without them.';
  if (outcome.kind === 'given') return { result: 'done', says: [outcome.message, stays] };
  return { result: 'failed', says: [outcome.message, ...outcome.byHand], problem: 'refused' };
}
