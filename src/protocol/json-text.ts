/**
 * The text of a JSON value, as `JSON.stringify` writes it, of any depth: that one runs out of stack some thousand
 * levels down, and callers may nest what they send.
 *
 * @param json as `JSON.parse` gives it
 */
export function jsonText(json: unknown): string {
  let text = "";
  const waiting: ({ written: string } | { value: unknown })[] = [{ value: json }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if ("written" in next) {
      text += next.written;
      continue;
    }
    const { value } = next;
    if (typeof value !== "object" || value === null) {
      text += JSON.stringify(value);
      continue;
    }
    const isArray = Array.isArray(value);
    const members = Object.entries(value);
    text += isArray ? "[" : "{";
    waiting.push({ written: isArray ? "]" : "}" });
    // The first one is written first, so it is put on the stack last.
    for (const [index, [key, member]] of [...members.entries()].reverse()) {
      const before = index === 0 ? "" : ",";
      waiting.push({ value: member }, { written: isArray ? before : `${before}${JSON.stringify(key)}:` });
    }
  }
  return text;
}
