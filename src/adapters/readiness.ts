import type { InstallationReport } from './installation/report.ts';

/** The literals of the reference's Runtime Readiness Model. */
export type InstallState = 'missing' | 'installing' | 'installed' | 'upgradeAvailable' | 'installError';
export type IntegrationState =
  | 'unconfigured'
  | 'configuring'
  | 'ready'
  | 'degraded'
  | 'unsupported'
  | 'error';
export type MonitorState = 'none' | 'available' | 'watching' | 'connectorOwnedOnly' | 'unavailable' | 'error';
export type PushState =
  | 'none'
  | 'available'
  | 'connectorOwnedOnly'
  | 'requiresResumeProcess'
  | 'unavailable'
  | 'error';

/** What a user is shown. */
export type Readiness = 'Not installed' | 'Installed' | 'Needs setup' | 'Ready' | 'Limited' | 'Error';

/** The part of a `RuntimeInstance` that readiness rests on. */
export interface ReadinessInstance {
  readonly status: 'running' | 'available' | 'stopped' | 'missing' | 'error';
  readonly capabilities: readonly string[];
  readonly error?: string | null;
}

/** All that readiness is computed from. */
export interface ReadinessInput {
  readonly runtimeId: string;
  readonly installation: Pick<InstallationReport, 'installState' | 'versionState' | 'scanError'>;
  /** What an installer knows beyond the scan. */
  readonly installer?: 'installing' | 'upgradeAvailable';
  /** Words that the adapter can do at all on this computer; empty: there is no adapter. */
  readonly capabilities: readonly string[];
  readonly instances: readonly ReadinessInstance[];
  /** Whether the runtime is signed in, by its own cheap status command; absent: not asked. */
  readonly auth?: 'ok' | 'missing' | 'unknown';
  /** Whether Shadow's plugin, channel or bridge is configured in it; absent: not asked. */
  readonly buddy?: 'configured' | 'configuring' | 'unconfigured';
}

/** One runtime's readiness in all its dimensions. */
export interface RuntimeReadiness {
  readonly installState: InstallState;
  readonly integrationState: IntegrationState;
  readonly monitorState: MonitorState;
  readonly pushState: PushState;
  readonly readiness: Readiness;
  /** What exactly is ready, and what isn't, in words. */
  readonly scopes: readonly string[];
  /** One line on what is wrong and can be acted on. */
  readonly detail: string | null;
}

/**
 * How a runtime becomes ready (Runtime Coverage Matrix):
 * - `native`: its own gateway, server or bridge must answer;
 * - `plugin`: Shadow's plugin in it carries chat; its sessions need a server of its own;
 * - `process`: we can start a structured process of it.
 */
interface Policy {
  readonly by: 'native' | 'plugin' | 'process';
  /** A `process` runtime is ready only once its sign-in is known to work. */
  readonly signIn?: true;
  /** It is no more than limited while its sessions can't be listed. */
  readonly needsInventory?: true;
  /** A `native` runtime whose sessions lie in its own store, and for which we can start a server of its own. */
  readonly ownStore?: true;
  /** What stays out of reach although it is ready. */
  readonly limits?: string;
}

const POLICIES: Readonly<Record<string, Policy>> = {
  openclaw: { by: 'native' },
  hermes: { by: 'plugin' },
  'cc-connect': { by: 'native' },
  'claude-code': { by: 'process', signIn: true, limits: 'Limited for sessions open in a terminal' },
  codex: { by: 'process', signIn: true, needsInventory: true },
  opencode: { by: 'native', ownStore: true },
  cursor: { by: 'process', signIn: true },
  kimi: { by: 'process', limits: 'Limited for Web UI and terminal sessions' },
  copilot: { by: 'process', signIn: true, limits: 'Limited for remote sessions' },
  antigravity: { by: 'process', limits: 'Limited for sessions open in a terminal' },
  pi: { by: 'process' },
};

/** A runtime that the matrix doesn't know gets the rules of a process runtime. */
const DEFAULT_POLICY: Policy = { by: 'process' };

const LIVE_WORDS: readonly string[] = ['liveWatch', 'processWatch', 'nativeStatus'];
const PUSH_WORDS: readonly string[] = ['sendMessage', 'sendAsync'];

/**
 * Computes a runtime's readiness. Pure: the same facts give the same answer. An installed binary alone is never
 * ready, and a probe that was too slow is never missing (V3).
 */
export function readinessOf(input: ReadinessInput): RuntimeReadiness {
  const policy = POLICIES[input.runtimeId] ?? DEFAULT_POLICY;
  const installState = installStateOf(input);
  const there = isThere(installState) && !isEditorOnly(input);
  const monitorState = monitorStateOf(input, policy, there);
  const pushState = pushStateOf(input, policy, there);
  const integrationState = integrationStateOf(input, policy, there);
  const readiness = wordFor(input, policy, { installState, integrationState, monitorState, pushState });
  return {
    installState,
    integrationState,
    monitorState,
    pushState,
    readiness,
    scopes: scopesOf(input, policy, { installState, monitorState, pushState, readiness }),
    detail: input.installation.scanError ?? firstError(input.instances),
  };
}

function installStateOf({ installation, installer }: ReadinessInput): InstallState {
  if (installer === 'installing') return 'installing';
  if (installer === 'upgradeAvailable' && installation.installState === 'installed')
    return 'upgradeAvailable';
  return installation.installState;
}

function isThere(state: InstallState): boolean {
  return state === 'installed' || state === 'upgradeAvailable';
}

function isEditorOnly({ installation }: ReadinessInput): boolean {
  return installation.versionState === 'editor';
}

function monitorStateOf(input: ReadinessInput, policy: Policy, there: boolean): MonitorState {
  const { capabilities, instances } = input;
  const running = instances.filter(({ status }) => status === 'running');
  if (running.some((instance) => hasAny(instance.capabilities, LIVE_WORDS))) return 'watching';
  const usable = instances.filter(({ status }) => status === 'running' || status === 'available');
  // Files outlive their program: what can be listed is listed, whether or not the binary is there.
  const listed = usable.some((instance) => hasAny(instance.capabilities, ['sessionList', ...LIVE_WORDS]));
  if ((policy.by !== 'native' || policy.ownStore) && listed) return 'available';
  if (isBroken(instances)) return 'error';
  if (!there || capabilities.length === 0) return 'none';
  if (capabilities.includes('connectorOwnedOnly')) return 'connectorOwnedOnly';
  return hasAny(capabilities, ['sessionList', ...LIVE_WORDS]) ? 'unavailable' : 'none';
}

/**
 * A message reaches a native runtime through its server, and a process runtime's open sessions only where an
 * instance accepts it at once (`sendAsync`: Codex's app-server, the pi extension); else a process resumes them.
 */
function pushStateOf(input: ReadinessInput, policy: Policy, there: boolean): PushState {
  const { capabilities, instances } = input;
  const into = policy.by === 'process' ? ['sendAsync'] : PUSH_WORDS;
  if (instances.some(({ status, capabilities: words }) => status === 'running' && hasAny(words, into))) {
    return 'available';
  }
  const ownedOnly = capabilities.includes('connectorOwnedOnly');
  if (!there || (!hasAny(capabilities, PUSH_WORDS) && !ownedOnly)) return 'none';
  if (isBroken(instances)) return 'error';
  if (input.auth === 'missing' || (policy.by !== 'process' && !policy.ownStore)) {
    return policy.by !== 'process' && ownedOnly && input.auth !== 'missing'
      ? 'connectorOwnedOnly'
      : 'unavailable';
  }
  return hasAny(capabilities, PUSH_WORDS) ? 'requiresResumeProcess' : 'connectorOwnedOnly';
}

function integrationStateOf(input: ReadinessInput, policy: Policy, there: boolean): IntegrationState {
  const { instances, buddy, auth } = input;
  if (buddy === 'configuring') return 'configuring';
  if (!there) return isEditorOnly(input) ? 'unsupported' : 'unconfigured';
  if (input.capabilities.length === 0 && buddy !== 'configured') return 'unsupported';
  if (isBroken(instances)) return 'error';
  if (auth === 'missing') return 'unconfigured';
  if (instances.some(({ status }) => status === 'error')) return 'degraded';
  if (policy.by === 'native') return isReachable(instances) ? 'ready' : 'unconfigured';
  if (policy.by === 'plugin')
    return buddy === 'configured' || isReachable(instances) ? 'ready' : 'unconfigured';
  return policy.signIn && !isSignedIn(input) ? 'degraded' : 'ready';
}

type States = Pick<RuntimeReadiness, 'installState' | 'integrationState' | 'monitorState' | 'pushState'>;

function wordFor(input: ReadinessInput, policy: Policy, states: States): Readiness {
  if (states.installState === 'missing' || states.installState === 'installing') return 'Not installed';
  if (states.installState === 'installError') return 'Error';
  if (isEditorOnly(input) || states.integrationState === 'unsupported') return 'Limited';
  if (input.auth === 'missing' || states.integrationState === 'configuring') return 'Needs setup';
  if (policy.by === 'native') return wordForNative(input, states);
  if (states.integrationState === 'error') return 'Needs setup';
  if (policy.by === 'plugin') return wordForPlugin(input, states);
  return wordForProcess(input, policy, states);
}

function wordForNative({ instances, buddy }: ReadinessInput, states: States): Readiness {
  if (isReachable(instances)) return 'Ready';
  // Transcript inventory, and no server that answers.
  if (states.monitorState === 'available') return 'Limited';
  // It was set up and doesn't answer, or half of the setup is there; with neither, only the binary is.
  const begun =
    buddy === 'configured' || instances.some(({ status }) => status === 'stopped' || status === 'error');
  return begun ? 'Needs setup' : 'Installed';
}

function wordForPlugin({ instances, buddy }: ReadinessInput, states: States): Readiness {
  if (buddy === 'configured' || isReachable(instances)) return 'Ready';
  return states.monitorState === 'available' ? 'Limited' : 'Installed';
}

function wordForProcess(input: ReadinessInput, policy: Policy, states: States): Readiness {
  const canPush =
    states.pushState !== 'none' && states.pushState !== 'unavailable' && states.pushState !== 'error';
  const listed = input.capabilities.includes('sessionList');
  const signedIn = !policy.signIn || isSignedIn(input);
  if (canPush && signedIn && (listed || !policy.needsInventory)) return 'Ready';
  const watches = states.monitorState === 'available' || states.monitorState === 'watching';
  return canPush || watches ? 'Limited' : 'Installed';
}

/** A session that runs now proves sign-in as well as a status command would. */
function isSignedIn({ auth, instances }: ReadinessInput): boolean {
  return auth === 'ok' || (auth !== 'missing' && instances.some(({ status }) => status === 'running'));
}

/** A server, gateway or bridge that answers. A store on disk has neither word, also while its runtime runs. */
function isReachable(instances: readonly ReadinessInstance[]): boolean {
  return instances.some(
    ({ status, capabilities }) =>
      status === 'running' && hasAny(capabilities, ['nativeStatus', ...PUSH_WORDS]),
  );
}

/** Everything that was tried failed. */
function isBroken(instances: readonly ReadinessInstance[]): boolean {
  return instances.length > 0 && instances.every(({ status }) => status === 'error');
}

const MONITOR_WORDS: Readonly<Record<MonitorState, string>> = {
  none: 'Monitoring not available yet',
  available: 'Session list only',
  watching: 'Ready for monitoring',
  connectorOwnedOnly: 'Monitoring of connector-owned sessions only',
  unavailable: 'Monitoring not enabled',
  error: 'Monitoring failed',
};

const PUSH_SCOPES: Readonly<Record<PushState, string>> = {
  none: 'Push not available yet',
  available: 'Ready for push',
  connectorOwnedOnly: 'Ready for connector-owned sessions',
  requiresResumeProcess: 'Ready for resume push',
  unavailable: 'Push not enabled',
  error: 'Push failed',
};

function scopesOf(
  input: ReadinessInput,
  policy: Policy,
  states: Pick<RuntimeReadiness, 'installState' | 'monitorState' | 'pushState' | 'readiness'>,
): readonly string[] {
  if (!isThere(states.installState)) {
    return states.monitorState === 'available' || states.monitorState === 'watching'
      ? [monitorScope(input, states.monitorState)]
      : [];
  }
  if (isEditorOnly(input)) return ['Only the editor is installed'];
  const asked = policy.signIn && input.capabilities.length > 0;
  const unchecked = asked && input.auth !== 'missing' && !isSignedIn(input);
  return [
    ...(policy.by === 'plugin' && input.buddy === 'configured' ? ['Ready for Buddy chat'] : []),
    monitorScope(input, states.monitorState),
    pushScope(states.pushState, unchecked === true),
    ...(input.auth === 'missing' ? ['Sign-in needed'] : []),
    ...(unchecked ? ['Sign-in not checked'] : []),
    ...(input.installation.versionState === 'slow' ? ['Version unknown (slow)'] : []),
    ...(policy.limits !== undefined && states.readiness === 'Ready' ? [policy.limits] : []),
  ];
}

function monitorScope(input: ReadinessInput, state: MonitorState): string {
  const watchable = input.instances.some(
    ({ status, capabilities }) => status === 'available' && hasAny(capabilities, LIVE_WORDS),
  );
  return state === 'available' && watchable ? MONITOR_WORDS.watching : MONITOR_WORDS[state];
}

/** "Ready" is not claimed of what still depends on a sign-in that nobody has checked. */
function pushScope(state: PushState, unchecked: boolean): string {
  return unchecked && state === 'requiresResumeProcess' ? 'Resume push after sign-in' : PUSH_SCOPES[state];
}

function firstError(instances: readonly ReadinessInstance[]): string | null {
  return instances.find(({ error }) => error)?.error ?? null;
}

function hasAny(words: readonly string[], wanted: readonly string[]): boolean {
  return wanted.some((word) => words.includes(word));
}
