/** What stands in place of a secret. */
export const MASK = '•••';

/**
 * Shapes of credentials that must not reach a title, a label or a log (cases C24, C25). A value is masked by
 * its own shape, or because the word before it says what it is.
 */
const SECRET_SHAPES: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?/g,
  /\b(?:sk|pk|rk)[-_](?:[a-z]+[-_])*[A-Za-z0-9_-]{16,}/g,
  /\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}/g,
  /\bgithub_pat_[A-Za-z0-9_]{20,}/g,
  /\bglpat-[A-Za-z0-9_-]{16,}/g,
  /\bxox[abeoprs]-[A-Za-z0-9-]{10,}/g,
  /\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g,
  /\bAIza[A-Za-z0-9_-]{30,}/g,
  /\bya29\.[A-Za-z0-9_-]{20,}/g,
  /\bnpm_[A-Za-z0-9]{30,}/g,
  /\bhf_[A-Za-z0-9]{24,}/g,
  /\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/g,
];

const AFTER_WORD =
  /((?:\b|_)(?:api[-_ ]?key|access[-_ ]?key|secret(?:[-_ ]?key)?|token|passw(?:or)?d|passphrase|authorization|credentials?)\b["']?\s*(?:[:=]|\bis\b)\s*(?:bearer\s+|basic\s+)?["']?)([^\s"'&;,|]{4,})/gi;
const BEARER = /(\b(?:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{12,})/gi;
const URL_PASSWORD = /(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*:)([^\s@/]+)(@)/gi;
const FLAG_VALUE =
  /(--?(?:password|passwd|token|api-key|apikey|secret|auth)(?:\s+|=))("[^"]*"|'[^']*'|[^\s]+)/gi;

/**
 * Masks everything that looks like a credential. Idempotent; never makes a text longer by more than the masks.
 */
export function redact(text: string): string {
  const shapeless = SECRET_SHAPES.reduce((out, shape) => out.replace(shape, MASK), text);
  return shapeless
    .replace(URL_PASSWORD, `$1${MASK}$3`)
    .replace(FLAG_VALUE, `$1${MASK}`)
    .replace(AFTER_WORD, `$1${MASK}`)
    .replace(BEARER, `$1${MASK}`);
}
