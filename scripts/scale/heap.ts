/** A queue of events, earliest first; events at the same time stay in the order in which they were added. */
export type Heap<T> = { add(at: number, item: T): void; take(): { at: number; item: T } | undefined };

export function createHeap<T>(): Heap<T> {
  type Entry = { at: number; order: number; item: T };
  const entries: Entry[] = [];
  let added = 0;
  const isBefore = (a: Entry, b: Entry) => a.at < b.at || (a.at === b.at && a.order < b.order);

  return {
    add(at, item) {
      const entry = { at, order: added++, item };
      let index = entries.length;
      entries.push(entry);
      while (index > 0) {
        const parent = entries[(index - 1) >> 1];
        if (parent === undefined || !isBefore(entry, parent)) break;
        entries[index] = parent;
        index = (index - 1) >> 1;
      }
      entries[index] = entry;
    },
    take() {
      const first = entries[0];
      const last = entries.pop();
      if (first === undefined || last === undefined) return undefined;
      if (entries.length === 0) return first;
      let index = 0;
      for (;;) {
        let child = 2 * index + 1;
        const [left, right] = [entries[child], entries[child + 1]];
        if (left === undefined) break;
        let least = left;
        if (right !== undefined && isBefore(right, left)) {
          least = right;
          child++;
        }
        if (!isBefore(least, last)) break;
        entries[index] = least;
        index = child;
      }
      entries[index] = last;
      return first;
    },
  };
}
