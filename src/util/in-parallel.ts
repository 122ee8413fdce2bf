/** Does a piece of work for each item, some at a time, and gives the results in the order of the items. */
export async function inParallel<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const waiting = [...items.entries()];
  let failure: { error: unknown } | undefined;
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, item] = next;
      try {
        results[index] = await work(item);
      } catch (error) {
        // The others finish what they have begun, so that nothing is left running.
        waiting.length = 0;
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (failure !== undefined) throw failure.error;
  return results;
}
