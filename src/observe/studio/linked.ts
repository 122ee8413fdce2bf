/** An entry of a list that is linked from the newest to the oldest: adding to it moves nothing. */
type Linked<T> = { before: T | undefined };

/** The entries of a list, from the oldest to the newest. */
export function fromOldest<T extends Linked<T>>(newest: T | undefined): T[] {
  const entries: T[] = [];
  for (let entry = newest; entry !== undefined; entry = entry.before) entries.push(entry);
  return entries.reverse();
}

/**
 * Cuts off the oldest entries that hold so many messages, or some more.
 *
 * @returns the newest that is left, and how many messages the others held
 */
export function forgetOldest<T extends Linked<T>>(
  newest: T | undefined,
  count: number,
  messagesOf: (entry: T) => number,
): { newest: T | undefined; forgotten: number } {
  const entries = fromOldest(newest);
  let forgotten = 0;
  let first = 0;
  for (const entry of entries) {
    if (forgotten >= count) break;
    forgotten += messagesOf(entry);
    first++;
  }
  const oldest = entries[first];
  if (oldest === undefined) return { newest: undefined, forgotten };
  oldest.before = undefined;
  return { newest, forgotten };
}
