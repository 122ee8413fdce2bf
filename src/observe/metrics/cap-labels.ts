/**
 * Makes a function that lets the first `count` different values through and gives "other" for all that come later.
 * Every value of a label is a series that is kept for ever: if a set is larger than expected, the metrics get less exact
 * instead of filling the memory.
 */
export function capLabels(count: number): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= count) return "other";
    known.add(value);
    return value;
  };
}
