/** Every format that the core edits. */
import type { Format, FormatId } from './document.ts';
import { envFormat } from './env/format.ts';
import { jsonFormat } from './json/format.ts';
import { tomlFormat } from './toml/format.ts';
import { yamlFormat } from './yaml/format.ts';

export const FORMATS: Readonly<Record<FormatId, Format>> = {
  json: jsonFormat('json'),
  jsonc: jsonFormat('jsonc'),
  json5: jsonFormat('json5'),
  toml: tomlFormat,
  yaml: yamlFormat,
  env: envFormat,
};
