/** Whether a host name is this computer, whatever a resolver says. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[|\]$/g, '').toLowerCase();
  if (bare === 'localhost' || bare === '::1') return true;
  return /^127(\.\d{1,3}){3}$/.test(bare);
}

/** Why an address is no webhook of ours: it must be https, or stay on this computer. Empty is "none". */
export function webhookProblem(text: string): string | undefined {
  if (text === '') return undefined;
  if (!URL.canParse(text)) return 'is no address';
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return 'must not hold a password';
  if (url.protocol === 'https:') return undefined;
  if (url.protocol === 'http:' && isLoopbackHost(url.hostname)) return undefined;
  return 'must be https, or http to this computer';
}
