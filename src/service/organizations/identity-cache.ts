import { createBoundedMap } from "../../util/bounded-map.ts";

/** Remembers for a short time what was loaded for a name. */
export type IdentityCache<T> = {
  /** The remembered value of a name, or the loaded one; concurrent calls load once. */
  get(name: string): Promise<T>;
  /** Forgets everything, loads under way included: they may have begun before the change that calls for it. */
  clear(): void;
};

/**
 * Makes a cache over `load`. What it gives is never older than `maxAgeMs`, counted from before the load began. Names
 * come from outside, so at most `maxEntries` are kept; the oldest go first.
 */
export function createIdentityCache<T>(options: {
  load: (name: string) => Promise<T>;
  now: () => number;
  maxAgeMs: number;
  maxEntries: number;
}): IdentityCache<T> {
  const { load, now, maxAgeMs, maxEntries } = options;
  const entries = createBoundedMap<string, { loadedAt: number; value: Promise<T> }>(maxEntries);

  return {
    get(name) {
      const time = now();
      const known = entries.get(name);
      // Otherwise a clock that was set back would keep an entry alive for that long.
      if (known !== undefined && time >= known.loadedAt && time - known.loadedAt < maxAgeMs)
        return known.value;

      const entry = { loadedAt: time, value: load(name) };
      entries.renew(name, entry);
      entry.value.catch(() => {
        if (entries.get(name) === entry) entries.delete(name);
      });
      return entry.value;
    },
    clear: () => entries.clear(),
  };
}
