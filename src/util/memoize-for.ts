/**
 * Makes a function that loads at most once per `maxAgeMs`, and one load at a time, however often it is called:
 * probes and scrapes must not become load on a database or a provider. A failure is remembered as well.
 */
export function memoizeFor<T>(
  load: () => Promise<T>,
  { maxAgeMs, now = () => performance.now() }: { maxAgeMs: number; now?: () => number },
): () => Promise<T> {
  let last: { value: Promise<T>; at: number; loading: boolean } | undefined;

  return () => {
    const time = now();
    if (last !== undefined && (last.loading || time - last.at < maxAgeMs)) return last.value;
    const value = load();
    const entry = { value, at: time, loading: true };
    last = entry;
    const loaded = () => {
      entry.loading = false;
    };
    value.then(loaded, loaded);
    return value;
  };
}
