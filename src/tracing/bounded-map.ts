/** A map of so many entries at most: a new one pushes out the oldest, with which `forget` is called. */
export function createBoundedMap<Key, Value>(most: number, forget: (value: Value) => void = () => {}) {
  const entries = new Map<Key, Value>();
  return {
    get: (key: Key) => entries.get(key),
    set(key: Key, value: Value): void {
      entries.set(key, value);
      if (entries.size <= most) return;
      const [oldest] = entries;
      if (oldest === undefined) return;
      entries.delete(oldest[0]);
      forget(oldest[1]);
    },
    delete: (key: Key) => entries.delete(key),
    values: () => entries.values(),
  };
}
