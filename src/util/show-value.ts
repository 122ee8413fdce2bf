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
