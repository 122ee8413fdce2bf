/** Parses JSON text; undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** `JSON.stringify` runs out of stack from some 4,000 levels on. */
const mostLevels = 2_000;

/** Returns a JSON value; undefined if it is nested so deeply that it could not be written again. */
export function unlessTooDeep(value: unknown): unknown {
  let level = [value].filter(isObject);
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === mostLevels) return undefined;
    level = level.flatMap((one) => Object.values(one).filter(isObject));
  }
  return value;
}

/** A replacer for `JSON.stringify`: bigints become decimal text. */
export function bigintsAsText(_key: string, part: unknown): unknown {
  return typeof part === "bigint" ? part.toString() : part;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** The fields of an object, to be read one by one; empty if the value is not an object. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return isObject(value) ? value : {};
}

/**
 * The text of a JSON value as `JSON.stringify` would write it, at any depth. `JSON.stringify` itself runs out of stack
 * at some thousand levels, and callers decide how deep a body is.
 *
 * @param json a value from `JSON.parse`
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
    // In reverse, since the last one on the stack is written first.
    for (const [index, [key, member]] of [...members.entries()].reverse()) {
      const before = index === 0 ? "" : ",";
      waiting.push({ value: member }, { written: isArray ? before : `${before}${JSON.stringify(key)}:` });
    }
  }
  return text;
}

/** HTTP headers with one string each; in Node they may have none or several. */
export function joinHeaders(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, typeof value === "string" ? value : value.join(", ")]],
    ),
  );
}
