const mask = "•";

/** `kept` characters at the beginning of a match stay. */
type Rule = { pattern: RegExp; kept: number };

/** What may be a secret wherever it stands. */
const rules: readonly Rule[] = [
  // API keys of this kit: their id is none.
  { pattern: /(?<=x4k_[A-Za-z0-9]{1,64}_)[A-Za-z0-9_-]+/g, kept: 0 },
  // Signatures and calldata.
  { pattern: /(?:0x)?[0-9a-fA-F]{65,}/g, kept: 10 },
  // 32 bytes may be a private key, unless the member says that they are not.
  {
    pattern:
      /(?<!(?:[nN]once|[hH]ash|[tT]ransaction|[iI]d)"\s*:\s*"(?:0x)?)(?<![0-9a-fA-F])(?:0x)?[0-9a-fA-F]{64}(?![0-9a-fA-F])/g,
    kept: 6,
  },
  // Base64, in which a payment header has its signature, and JSON Web Tokens.
  { pattern: /[A-Za-z0-9+/_=-]{80,}|eyJ[A-Za-z0-9+/_=.-]{20,}/g, kept: 12 },
  // Credentials of a header, and those in URLs. Where none begin, spaces are not looked back over: a text may have many.
  { pattern: /(?=[^\s"',])(?<=\b(?:Bearer|Basic)\s+)[^\s"',]+/gi, kept: 0 },
  { pattern: /(?<=:\/\/[^\s/"@:]{0,64}:)[^\s/"@]+(?=@)/g, kept: 0 },
  { pattern: /(?<=[?&](?:[a-z]*key|token|secret|signature)=)[^&\s"']+/gi, kept: 0 },
  // Twelve words or more, as wallets are restored with.
  { pattern: /\b[a-z]{3,8}(?:[ ,]+[a-z]{3,8}){11,}\b/g, kept: 0 },
  // By the name of the member.
  {
    pattern:
      /(?<="[\w-]*(?:private[_-]?key|secret|mnemonic|seed|password|passphrase|api[_-]?key|token|authorization)"\s*:\s*")[^"]+/gi,
    kept: 0,
  },
];

/**
 * What is left of one of them at the end of a text that was cut. Tried only where such a run begins: from each of its
 * characters, a long run that is not at the end would take seconds.
 */
const cutRule: Rule = { pattern: /(?<![A-Za-z0-9+/_=.-])[A-Za-z0-9+/_=.-]{16,}$/g, kept: 4 };

/**
 * A text from outside with its secrets masked, character by character: each place of the text stays where it is.
 *
 * @param isCut whether the text goes on where it ends
 */
export function maskSecrets(text: string, { isCut = false } = {}): string {
  return [...rules, ...(isCut ? [cutRule] : [])].reduce(
    (masked, { pattern, kept }) =>
      masked.replace(
        pattern,
        (found) => found.slice(0, kept) + mask.repeat(Math.max(0, found.length - kept)),
      ),
    text,
  );
}

/** Whether something of a text was masked. */
export function isMasked(text: string): boolean {
  return text.includes(mask);
}
