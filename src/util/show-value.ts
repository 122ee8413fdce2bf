/** Characters of a value that are shown. */
const mostShown = 80;

/**
 * Any value for a message, as JSON, truncated where it is long. Never throws: text made by `String(value)` or a template
 * calls the value's `toString`, in whose place parsed JSON may have something that is no function.
 */
export function showValue(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = typeof value === "string" ? `"${value}"` : jsonOf(value);
  return text.length > mostShown ? `${text.slice(0, mostShown)}…` : text;
}

/** A text as it is, and any other value as {@link showValue} shows it. */
export function asText(value: unknown): string {
  return typeof value === "string" ? value : showValue(value);
}

function jsonOf(value: unknown): string {
  try {
    // Of a function or a symbol it makes nothing.
    return JSON.stringify(value) ?? `a ${typeof value}`;
  } catch {
    // Nested too deeply for its recursion, or not made of JSON at all.
    return Array.isArray(value) ? "an array that cannot be shown" : `a value of type ${typeof value}`;
  }
}

/** Longer than any name or number that is asked for, shorter than any key. */
const longestQuoted = 24;

/** A text that was asked for, for a message: only its length where it is long, since it may be a secret. */
export function quote(text: string): string {
  return text.length <= longestQuoted ? JSON.stringify(text) : `a text of ${text.length} characters`;
}
