import type { z } from "zod";

const mostShown = 80;

/**
 * Any value for a message, as JSON, truncated if it is long. Never throws: `String(value)` or a template would call the
 * value's `toString`, which need not be a function in parsed JSON.
 */
export function showValue(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? `"${value}"` : jsonOf(value);
  return text.length > mostShown ? `${text.slice(0, mostShown)}…` : text;
}

/** A string as it is, and any other value as shown by {@link showValue}. */
export function asText(value: unknown): string {
  return typeof value === "string" ? value : showValue(value);
}

function jsonOf(value: unknown): string {
  try {
    // It returns undefined for a function or a symbol.
    return JSON.stringify(value) ?? `a ${typeof value}`;
  } catch {
    // Nested too deeply for its recursion, or not JSON at all.
    return Array.isArray(value) ? "an array that cannot be shown" : `a value of type ${typeof value}`;
  }
}

/** Longer than any name or number that is expected, shorter than any key. */
const longestQuoted = 24;

/** Quotes an unknown name or number for a message; if it is long, only its length, since it may be a secret. */
export function quote(text: string): string {
  return text.length <= longestQuoted ? JSON.stringify(text) : `a text of ${text.length} characters`;
}

/**
 * Makes a line from outside safe for a terminal: control characters (C0, DEL, C1) and those that reorder or break lines
 * are written as escapes (`\u001b`). JSON text stays equivalent JSON.
 */
export function escapeControls(line: string): string {
  return line.replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, escapeOf);
}

/** Like {@link escapeControls}, for a text of several lines; keeps the line breaks. */
export function escapeControlsInText(text: string): string {
  return text.replace(/[^\P{Cc}\n\r]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\r(?!\n|$)/gu, escapeOf);
}

function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** Longer texts are not treated as typos, and are slow to compare. */
export const longestSlip = 100;

/** Returns the candidates that need the fewest edits to become the text, nearest first. */
export function nearest(text: string, candidates: readonly string[], count: number): readonly string[] {
  const compared = text.slice(0, longestSlip);
  return candidates
    .map((candidate) => ({ candidate, typos: typosBetween(compared, candidate) }))
    .sort((a, b) => a.typos - b.typos)
    .slice(0, count)
    .map(({ candidate }) => candidate);
}

/**
 * Returns the candidate that a text is probably a typo of; undefined if none is near.
 *
 * @param mostTypos how many letters may differ, see {@link typosBetween}
 */
export function findSlip(text: string, candidates: readonly string[], mostTypos: number): string | undefined {
  if (text.length > longestSlip) return undefined;
  const [meant] = nearest(text, candidates, 1);
  return meant !== undefined && typosBetween(text, meant) <= mostTypos ? meant : undefined;
}

/** The number of typos tolerated in a word: fewer for shorter words. */
export function mostTyposOf(word: string): number {
  return Math.min(2, Math.max(1, Math.floor(word.length / 3)));
}

/** The number of letters that must be added, dropped, changed or swapped with the next to turn one word into the other. */
export function typosBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  let before: number[] = [];
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? (before[j - 2] ?? 0) + 1 : replaced;
      next.push(Math.min(replaced, swapped, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The first place where data violates a schema, such as `answers[3].method`. For people, to whom zod's messages say less. */
export function firstPlace({ issues: [issue] }: z.ZodError): string {
  if (issue === undefined) return "its start";
  const unknown = issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const path = [...issue.path, ...unknown]
    .map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`))
    .join("")
    .replace(/^\./, "");
  return path === "" ? "its start" : path;
}

const mask = "•";

/** The first `kept` characters of a match are not masked. */
type Rule = { pattern: RegExp; kept: number };

/** Patterns of text that may be a secret anywhere. */
const rules: readonly Rule[] = [
  // API keys of this kit, except their id.
  { pattern: /(?<=x4k_[A-Za-z0-9]{1,64}_)[A-Za-z0-9_-]+/g, kept: 0 },
  // Signatures and calldata, but not the nonce of a permit, which is a number of up to 78 digits.
  {
    pattern: /(?<![0-9a-fA-F]|[nN]once"\s*:\s*"(?=\d{65,78}"))(?:0x)?[0-9a-fA-F]{65,}/g,
    kept: 10,
  },
  // 32 bytes may be a private key, unless the field's name tells otherwise.
  {
    pattern:
      /(?<!(?:[nN]once|[hH]ash|[tT]ransaction|[iI]d)"\s*:\s*"(?:0x)?)(?<![0-9a-fA-F])(?:0x)?[0-9a-fA-F]{64}(?![0-9a-fA-F])/g,
    kept: 6,
  },
  // Base64, as in the signature of a payment header, and JSON Web Tokens.
  { pattern: /[A-Za-z0-9+/_=-]{80,}|eyJ[A-Za-z0-9+/_=.-]{20,}/g, kept: 12 },
  // Credentials in headers and URLs. The leading lookahead avoids looking back over spaces, of which a text may have many.
  { pattern: /(?=[^\s"',])(?<=\b(?:Bearer|Basic)\s+)[^\s"',]+/gi, kept: 0 },
  { pattern: /(?<=:\/\/[^\s/"@:]{0,64}:)[^\s/"@]+(?=@)/g, kept: 0 },
  { pattern: /(?<=[?&](?:[a-z]*key|token|secret|signature)=)[^&\s"']+/gi, kept: 0 },
  // Twelve words or more, as in wallet recovery phrases.
  { pattern: /\b[a-z]{3,8}(?:[ ,]+[a-z]{3,8}){11,}\b/g, kept: 0 },
  // By the name of the field. A token that is an address is a token on a chain.
  {
    pattern:
      /(?<="[\w-]*(?:private[_-]?key|secret|mnemonic|seed|password|passphrase|api[_-]?key|token|authorization)"\s*:\s*")(?!(?<=token"\s*:\s*")0x[0-9a-f]{40}")[^"]+/gi,
    kept: 0,
  },
];

/**
 * The rest of such a run at the end of a truncated text. Matched only from the beginning of a run: trying it at each
 * character would take seconds for a long run that is not at the end.
 */
const cutRule: Rule = { pattern: /(?<![A-Za-z0-9+/_=.-])[A-Za-z0-9+/_=.-]{16,}$/g, kept: 4 };

/**
 * Masks the secrets in a text from outside, character by character, so that its length and positions do not change.
 *
 * @param isCut true if the text is truncated
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

/** Returns true if part of a text was masked. */
export function isMasked(text: string): boolean {
  return text.includes(mask);
}

/** A table column, by its heading; numbers are right-aligned. */
export type Column = string | { right: string };

/** Lays out rows in columns as wide as their widest cell, two spaces apart. */
export function renderTable(columns: readonly Column[], shown: readonly (readonly string[])[]): string {
  // A cell may contain text from outside, which must not look like a separate row.
  const rows = shown.map((cells) => cells.map(escapeControls));
  const headings = columns.map((column) => (typeof column === "string" ? column : column.right));
  const widths = headings.map((heading, index) =>
    Math.max(heading.length, ...rows.map((row) => row[index]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    columns
      .map((column, index) => {
        const cell = cells[index] ?? "";
        const width = widths[index] ?? 0;
        return typeof column === "string" ? cell.padEnd(width) : cell.padStart(width);
      })
      .join("  ")
      .trimEnd();
  return [line(headings), line(widths.map((width) => "─".repeat(width))), ...rows.map(line)].join("\n");
}

/** The minimum width of a terminal. */
export const terminalWidth = 80;

/** Lays out names on the left and their descriptions beside them, wrapped to the width of a terminal. */
export function renderRows(rows: readonly (readonly [name: string, text: string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows
    .map(([name, text]) => {
      const [first = "", ...others] = wrapText(text, terminalWidth - 4 - width);
      const indent = " ".repeat(4 + width);
      return [`  ${name.padEnd(width)}  ${first}`, ...others.map((line) => `${indent}${line}`)].join("\n");
    })
    .join("\n");
}

/** Wraps a text at spaces into lines of `width` characters; a longer word gets its own line. */
export function wrapText(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line === undefined || line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${line} ${word}`;
  }
  return lines;
}
