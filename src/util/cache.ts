/** A map with a limited number of entries. */
export type BoundedMap<Key, Value> = ReturnType<typeof createBoundedMap<Key, Value>>;

/** Makes a map in which a new entry evicts the one that was set first; `forget` is called with the evicted value. */
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
    /** Like `set`, and makes the entry the newest. */
    renew(key: Key, value: Value): void {
      entries.delete(key);
      this.set(key, value);
    },
    delete: (key: Key) => entries.delete(key),
    clear: () => entries.clear(),
    values: () => entries.values(),
    get size() {
      return entries.size;
    },
  };
}

/**
 * Makes a function that loads at most once per `maxAgeMs`, and only one load at a time, however often it is called:
 * probes and scrapes must not become load on a database or a provider. Failures are cached too. The arguments are those
 * of the call that loads.
 */
export function memoizeFor<T, Arguments extends readonly unknown[]>(
  load: (...args: Arguments) => Promise<T>,
  { maxAgeMs, now = () => performance.now() }: { maxAgeMs: number; now?: () => number },
): (...args: Arguments) => Promise<T> {
  let last: { value: Promise<T>; at: number; loading: boolean } | undefined;

  return (...args) => {
    const time = now();
    if (last !== undefined && (last.loading || time - last.at < maxAgeMs)) return last.value;
    const value = load(...args);
    const entry = { value, at: time, loading: true };
    last = entry;
    const loaded = () => {
      entry.loading = false;
    };
    value.then(loaded, loaded);
    return value;
  };
}
