import {
  editorsHere,
  installWrapper,
  type SettingsDone,
  type WrapperDone,
} from '../../install/wrapper/wrapper.ts';
import type { World } from '../world.ts';
import { socketForShim, wrapperContext } from '../wrapper-change.ts';
import type { Deed, Finding, Step } from './step.ts';

/** The wrapper of Claude Code in editors of the VS Code family, where one is here (S-840). */
export function wrapperStep(world: World): Step {
  return {
    id: 'wrapper',
    title: 'the wrapper for Claude Code in VS Code',
    command: 'install-wrapper',
    undo: 'uninstall-wrapper',
    look: async () => look(world),
  };
}

function look(world: World): Finding {
  // An editor on Windows starts no script in the place of a program.
  if (world.platform === 'win32') return { kind: 'none' };
  const editors = editorsHere(wrapperContext(world, {}));
  if (editors.length === 0) return { kind: 'none' };
  const planned = install(world, true);
  const problem = problemsOf(planned);
  const would = planned.settings.filter(({ result }) => result === 'wouldChange');
  const isMissing = planned.shim.result === 'wouldWrite';
  const isNamed = planned.settings.some(({ result }) => result === 'unchanged');
  if (would.length === 0 && !(isMissing && isNamed)) {
    if (problem.length > 0) return { kind: 'refused', says: problem, problem: 'configRefused' };
    return { kind: 'already', says: planned.settings.map((one) => one.message ?? one.path) };
  }
  const names = editors.map(({ label }) => label).join(', ');
  return {
    kind: 'offer',
    question: {
      text: `Let ${names} start Claude Code through the wrapper?`,
      reason:
        'The extension’s sessions then say their exact state, and their terminal titles show it. Hooks say most of it without.',
      fallback: false,
      diff: would.map(({ diff }) => diff?.trimEnd() ?? '').join('\n'),
    },
    accept: async () => deedOf(install(world, false)),
  };
}

function install(world: World, dryRun: boolean): WrapperDone {
  const socket = socketForShim(world);
  return installWrapper(wrapperContext(world, { 'dry-run': dryRun }), {
    self: world.self,
    replace: false,
    ...(socket === undefined ? {} : { socket }),
  });
}

const isProblem = ({ result }: SettingsDone): boolean => result === 'refused' || result === 'failed';

function problemsOf({ shim, settings }: WrapperDone): readonly string[] {
  const shims = shim.result === 'failed' ? [shim.message ?? shim.path] : [];
  return [...shims, ...settings.filter(isProblem).map((one) => one.message ?? one.path)];
}

function deedOf(done: WrapperDone): Deed {
  const changed = done.settings.filter(({ result }) => result === 'changed');
  const says = changed.flatMap(({ path, backup }) => [
    `${path}: changed`,
    ...(backup === undefined ? [] : [`As it was before: ${backup}`]),
  ]);
  const left = done.settings.flatMap(({ result, message }) =>
    result === 'left' && message !== undefined ? [message] : [],
  );
  const problems = problemsOf(done);
  if (problems.length > 0)
    return { result: 'failed', says: [...says, ...left, ...problems], problem: 'configRefused' };
  return { result: 'done', says: [...says, ...left, 'Reload the editor’s windows.'] };
}
