import { type Part, readPart } from "../../src/protocol/wire-values.ts";

/** Reads a value to its end. `malformed` lists the parts that cannot be read, in order, each with the problem. */
export function readToEnd<T>(
  value: unknown,
  path: string,
  read: (part: Part) => T,
): { value: T; malformed: readonly string[] } {
  const malformed: string[] = [];
  const part = readPart(value, path, (at, problem) => malformed.push(`${at}: ${problem}`));
  return { value: read(part), malformed };
}
