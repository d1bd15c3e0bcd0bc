import { existsSync } from 'node:fs';
import { labelOf } from '../adapters/catalog.ts';
import { configPathIn } from '../runtime/config/path.ts';
import { showTitle } from '../runtime/config/titles.ts';
import type { Session } from '../runtime/session/session.ts';
import { connectorHome } from '../runtime/store/home.ts';
import { signalTerminal } from './output/signal.ts';
import type { World } from './world.ts';

/**
 * Tells the terminal of a panel: bell, OSC 9 or OSC 777, as the settings say. Undefined where they say nothing. It
 * decides like the daemon does, by a ledger of its own, since the panel tells what happens while it is open.
 */
export async function terminalTeller(
  world: World,
  signal: (sequence: string) => boolean = signalTerminal,
): Promise<((sessions: readonly Session[]) => void) | undefined> {
  const home = connectorHome(world.env, world.home);
  // Nothing is loaded for a panel without settings.
  if (!existsSync(configPathIn(home))) return undefined;
  const { readConfig } = await import('../runtime/config/read.ts');
  const { privacy, notifications } = readConfig(home).config;
  const { style, details } = notifications.sinks.terminal;
  if (!notifications.enabled || style === 'off') return undefined;
  const [{ createDecider }, { createLedger }, { isQuiet }, { terminalSignal }] = await Promise.all([
    import('../runtime/notify/decide.ts'),
    import('../runtime/notify/ledger.ts'),
    import('../runtime/config/quiet-hours.ts'),
    import('../runtime/notify/sinks/terminal.ts'),
  ]);
  const decider = createDecider({
    ledger: createLedger(),
    wants: (kind) => notifications.states[kind],
    isQuiet: (now) => isQuiet(notifications.quietHours, now),
    patienceMs: () => notifications.shellPatienceMinutes * 60_000,
    labelOf,
  });
  const insideTmux = world.env['TMUX'] !== undefined;
  const state = { begun: false };
  return (sessions) => {
    if (!state.begun) decider.begin(sessions, world.now());
    state.begun = true;
    for (const notice of decider.observe(sessions, world.now())) {
      const { title } = showTitle({ title: notice.details.title, workDir: undefined }, privacy.titles);
      const shown = { ...notice, details: title === undefined ? {} : { title } };
      signal(terminalSignal(shown, style, details, insideTmux));
    }
  };
}
