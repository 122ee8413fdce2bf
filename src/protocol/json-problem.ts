/** Where and how a text stops being JSON. */
export type JsonProblem = {
  /** The number of UTF-16 code units before it. */
  offset: number;
  /** Starts at 1. */
  line: number;
  /** Starts at 1. */
  column: number;
  /** Such as `"}" where a value is expected`. */
  found: string;
};

/** The expected next token, as messages name it. */
type Expected =
  | "a value"
  | 'a value or "]"'
  | 'a key in double quotes or "}"'
  | "a key in double quotes"
  | '":"'
  | '"," or "]"'
  | '"," or "}"'
  | "nothing more";

const space = /[ \t\n\r]*/y;
const plainText = /[ !#-[\]-\uffff]+/y;
const escaped = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const word = /[\p{L}\p{N}_$.+-]+|./suy;

/**
 * Finds the first position where a text is not JSON; undefined if it is valid. The messages of JavaScript engines
 * differ, or quote the text, which may contain a secret.
 */
export function findJsonProblem(json: string): JsonProblem | undefined {
  let at = 0;
  const open: ("{" | "[")[] = [];
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(json)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  /** The token expected after a value. */
  const after = (): Expected => {
    const around = open.at(-1);
    return around === undefined ? "nothing more" : around === "{" ? '"," or "}"' : '"," or "]"';
  };
  const takeText = (): "whole" | "broken" | "none" => {
    if (json[at] !== '"') return "none";
    at++;
    // A single expression for both would overflow the stack on a text of megabytes.
    while (take(plainText) !== undefined || take(escaped) !== undefined);
    if (json[at] !== '"') return "broken";
    at++;
    return "whole";
  };

  let expected: Expected = "a value";
  // The service accepts a byte order mark.
  if (json.startsWith("\ufeff")) at = 1;
  for (;;) {
    take(space);
    const next = json[at];
    if (next === undefined) {
      return expected === "nothing more"
        ? undefined
        : problemAt(json, at, `the body ends where ${expected} is expected: it is cut off`);
    }
    const isEnd = (next === "}" || next === "]") && expected.endsWith(`"${next}"`);
    if (isEnd) {
      at++;
      open.pop();
      expected = after();
    } else if (expected.startsWith("a key")) {
      const key = takeText();
      if (key !== "whole") return key === "broken" ? brokenText(json, at) : unexpected(json, at, expected);
      expected = '":"';
    } else if (expected.startsWith("a value")) {
      if (next === "{" || next === "[") {
        at++;
        open.push(next);
        expected = next === "{" ? 'a key in double quotes or "}"' : 'a value or "]"';
        continue;
      }
      const string = takeText();
      if (string === "broken") return brokenText(json, at);
      if (string === "none" && take(scalar) === undefined) return unexpected(json, at, expected);
      expected = after();
    } else if (next === ":" && expected === '":"') {
      at++;
      expected = "a value";
    } else if (next === "," && expected.startsWith('","')) {
      at++;
      expected = open.at(-1) === "{" ? "a key in double quotes" : "a value";
    } else {
      return unexpected(json, at, expected);
    }
  }
}

/** Converts an offset to line and column. */
function problemAt(json: string, offset: number, found: string): JsonProblem {
  const before = json.slice(0, offset).split("\n");
  const [line, column] = [before.length, (before.at(-1)?.length ?? 0) + 1];
  return { offset, line, column, found };
}

function unexpected(json: string, at: number, expected: Expected): JsonProblem {
  word.lastIndex = at;
  const found = word.exec(json)?.[0] ?? "";
  // A long word may be a secret.
  const shown = JSON.stringify(found.length > 12 ? `${found.slice(0, 8)}…` : found);
  const hint = found === "'" ? ", and JSON has no single quotes" : "";
  if (expected === "nothing more") return problemAt(json, at, `${shown} behind the end of the JSON`);
  return problemAt(json, at, `${shown} where ${expected} is expected${hint}`);
}

function brokenText(json: string, at: number): JsonProblem {
  const next = json[at];
  if (next === undefined) return problemAt(json, at, "the body ends within a text: it is cut off");
  return problemAt(
    json,
    at,
    next === "\\"
      ? "a backslash that begins no escape of JSON"
      : "a line break or control character within a text",
  );
}
