/** Freezes an object of plain data, and everything in it. */
export function freezeDeep<T extends object>(value: T): Readonly<T> {
  for (const part of Object.values(value)) {
    if (typeof part === "object" && part !== null && !Object.isFrozen(part)) freezeDeep(part);
  }
  return Object.freeze(value);
}
