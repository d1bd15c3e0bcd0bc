import { type Data, isArray, isObject, lookup } from '../../../src/install/edit/data.ts';
import type { FormatId } from '../../../src/install/edit/document.ts';
import { type Step, settle } from '../../../src/install/edit/history.ts';
import {
  type Proposal,
  proposeInstall,
  proposeRemoval,
  proposeUndo,
} from '../../../src/install/edit/lifecycle.ts';
import {
  appendToArray,
  type Operation,
  removeFromArray,
  removeKey,
  setValue,
} from '../../../src/install/edit/operation.ts';
import type { Wiring } from '../../../src/install/edit/wiring.ts';

const OURS = /^"?\S*shadowob-connector"? hook --agent \w+$/;
export const EVENTS = ['SessionStart', 'PreToolUse', 'Stop'] as const;

const commandOf = (handler: Data | undefined): string => {
  const command = isObject(handler) ? handler['command'] : undefined;
  return typeof command === 'string' ? command : '';
};

const list = (data: Data | undefined): readonly Data[] => (isArray(data) ? data : []);

interface Place {
  readonly group: number;
  readonly handler: number;
  readonly alone: boolean;
  readonly command: string;
}

function placesOf(data: Data, event: string): readonly Place[] {
  return list(lookup(data, ['hooks', event])).flatMap((group, index) => {
    const handlers = list(isObject(group) ? group['hooks'] : undefined);
    return handlers.flatMap((one, handler) =>
      OURS.test(commandOf(one))
        ? [{ group: index, handler, alone: handlers.length === 1, command: commandOf(one) }]
        : [],
    );
  });
}

/** Hooks as Claude Code and Codex have them: one group of ours behind the others, known by its words. */
export function hooksWiring(format: FormatId, program: string): Wiring {
  const command = `${program}/shadowob-connector hook --agent claude`;
  return {
    id: 'hooks',
    format,
    install(data) {
      const hooks = lookup(data, ['hooks']);
      if (hooks !== undefined && !isObject(hooks)) return [];
      return EVENTS.flatMap((event): readonly Operation[] => {
        const groups = lookup(data, ['hooks', event]);
        if (groups !== undefined && !isArray(groups)) return [];
        const places = placesOf(data, event);
        if (places.length === 0) {
          return [appendToArray(['hooks', event], { hooks: [{ type: 'command', command, timeout: 5 }] })];
        }
        return places
          .filter((place) => place.command !== command)
          .map((place) =>
            setValue(['hooks', event, place.group, 'hooks', place.handler, 'command'], command),
          );
      });
    },
    remove(data) {
      const hooks = lookup(data, ['hooks']);
      const events = isObject(hooks) ? Object.keys(hooks) : [];
      return events.flatMap((event) =>
        placesOf(data, event)
          .toReversed()
          .map((place) =>
            place.alone
              ? removeFromArray(['hooks', event], place.group)
              : removeFromArray(['hooks', event, place.group, 'hooks'], place.handler),
          ),
      );
    },
  };
}

/** A plugin switched on, and its settings: what Hermes gets. */
export function pluginWiring(format: FormatId, token: string): Wiring {
  return {
    id: 'plugin',
    format,
    install(data) {
      const enabled = lookup(data, ['plugins', 'enabled']);
      return [
        ...(list(enabled).includes('shadowob') ? [] : [appendToArray(['plugins', 'enabled'], 'shadowob')]),
        setValue(['platforms', 'shadowob'], {
          enabled: true,
          token,
          extra: { mention_only: false, slash_commands: [], catchup_minutes: 0 },
        }),
      ];
    },
    remove(data) {
      const index = list(lookup(data, ['plugins', 'enabled'])).indexOf('shadowob');
      return [
        ...(index === -1 ? [] : [removeFromArray(['plugins', 'enabled'], index)]),
        ...(lookup(data, ['platforms', 'shadowob']) === undefined
          ? []
          : [removeKey(['platforms', 'shadowob'])]),
      ];
    },
  };
}

/** Single keys at the top level: what `.env` gets. */
export function keysWiring(format: FormatId, values: Readonly<Record<string, string>>): Wiring {
  return {
    id: 'keys',
    format,
    install: () => Object.entries(values).map(([key, value]) => setValue([key], value)),
    remove: (data) =>
      Object.keys(values)
        .filter((key) => lookup(data, [key]) !== undefined)
        .map((key) => removeKey([key])),
  };
}

/** A file and its record, without a disk. */
export class PaperFile {
  text: string | null;
  steps: readonly Step[] = [];
  readonly refusals: Proposal[] = [];

  constructor(text: string | null) {
    this.text = text;
  }

  install(wiring: Wiring): Proposal['kind'] {
    return this.take(proposeInstall(this.text, this.standing(), wiring));
  }

  remove(wiring: Wiring): Proposal['kind'] {
    return this.take(proposeRemoval(this.text, this.standing(), wiring));
  }

  undo(): Proposal['kind'] {
    return this.take(proposeUndo(this.text, this.standing()));
  }

  private standing(): readonly Step[] {
    return settle(this.steps, this.text);
  }

  private take(proposal: Proposal): Proposal['kind'] {
    if (proposal.kind === 'step') {
      this.steps = [...this.standing(), proposal.step];
      this.text = proposal.after;
    } else if (proposal.kind === 'undo') {
      this.steps = this.standing().slice(0, -1);
      this.text = proposal.after;
    } else if (proposal.kind !== 'nothing') {
      this.refusals.push(proposal);
    }
    return proposal.kind;
  }
}
