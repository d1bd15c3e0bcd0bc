import type { ApprovalAnswer, Question } from '../../../runtime/control.ts';
import { asFields, type Fields, listOf, objectOf, textOf } from '../fields.ts';

/** What a tool server wants to know (MCP elicitation, as the app-server 0.171 hands it on). */
export type Form =
  /** Nothing to fill in. */
  | { readonly kind: 'plain' }
  | {
      readonly kind: 'fields';
      readonly questions: readonly Question[];
      contentOf(answers: NonNullable<ApprovalAnswer['answers']>): Fields;
    }
  /** A proof of identity, or a shape that isn't known: it can only be refused here. */
  | { readonly kind: 'unknown' };

/** Forms with more fields than this are left to the terminal. */
const MAX_FIELDS = 32;

/** Reads the request of a form. Fields that are known are texts, numbers, yes-no, and choices. */
export function readForm(params: Fields): Form {
  switch (textOf(params, 'mode')) {
    case 'url':
      return { kind: 'plain' };
    case 'form':
    case 'openai/form':
    case 'openaiForm':
      return formOf(objectOf(params, 'requestedSchema'));
    default:
      return { kind: 'unknown' };
  }
}

function formOf(schema: Fields | undefined): Form {
  const entries = Object.entries(objectOf(schema, 'properties') ?? {});
  if (entries.length === 0) return { kind: 'plain' };
  const fields = entries.flatMap(([name, value]) => fieldOf(name, asFields(value)));
  if (fields.length !== entries.length || fields.length > MAX_FIELDS) return { kind: 'unknown' };
  return {
    kind: 'fields',
    questions: fields.map(({ question }, index) => ({ ...question, id: String(index + 1) })),
    contentOf: (answers) =>
      Object.fromEntries(
        fields.flatMap(({ name, read }, index) => {
          const given = answers[String(index + 1)];
          // An empty answer leaves a field out, which only one that is not required allows.
          return given === undefined || given.every((one) => one === '') ? [] : [[name, read(given)]];
        }),
      ),
  };
}

interface Field {
  readonly name: string;
  readonly question: Omit<Question, 'id'>;
  read(given: readonly string[]): unknown;
}

function fieldOf(name: string, schema: Fields | undefined): readonly Field[] {
  const text = textOf(schema, 'title') ?? textOf(schema, 'description') ?? name;
  const ask = (choices: readonly Choice[], multiple: boolean): Omit<Question, 'id'> => ({
    text,
    options: choices.map(({ label }) => ({ label })),
    multiple,
  });
  const choices = choicesOf(schema);
  switch (textOf(schema, 'type')) {
    case 'string':
      return [{ name, question: ask(choices, false), read: ([first = '']) => choiceOf(choices, first) }];
    case 'boolean':
      return [{ name, question: ask(YES_NO, false), read: ([first = '']) => yesOrNo(first) }];
    case 'integer':
    case 'number':
      return [{ name, question: ask([], false), read: ([first = '']) => numberIn(first) }];
    case 'array': {
      const items = choicesOf(objectOf(schema, 'items'));
      return [{ name, question: ask(items, true), read: (all) => all.map((one) => choiceOf(items, one)) }];
    }
    default:
      return [];
  }
}

interface Choice {
  readonly value: string;
  readonly label: string;
}

const YES_NO: readonly Choice[] = [
  { value: 'true', label: 'yes' },
  { value: 'false', label: 'no' },
];

/** `enum` with or without `enumNames`, or a list of constants with titles. */
function choicesOf(schema: Fields | undefined): readonly Choice[] {
  const names = listOf(schema, 'enumNames');
  const plain = listOf(schema, 'enum').flatMap((value, index) =>
    typeof value === 'string' ? [{ value, label: wordOr(names[index], value) }] : [],
  );
  if (plain.length > 0) return plain;
  return [...listOf(schema, 'oneOf'), ...listOf(schema, 'anyOf')].flatMap((one) => {
    const value = textOf(asFields(one), 'const');
    return value === undefined ? [] : [{ value, label: textOf(asFields(one), 'title') ?? value }];
  });
}

function wordOr(name: unknown, value: string): string {
  return typeof name === 'string' && name !== '' ? name : value;
}

function choiceOf(choices: readonly Choice[], given: string): string {
  return choices.find(({ label, value }) => label === given || value === given)?.value ?? given;
}

/** What is neither goes as it was typed: the tool server says what it takes. */
function yesOrNo(text: string): boolean | string {
  if (/^(?:yes|true)$/i.test(text)) return true;
  return /^(?:no|false)$/i.test(text) ? false : text;
}

function numberIn(text: string): number | string {
  const value = Number(text);
  return text.trim() !== '' && Number.isFinite(value) ? value : text;
}
