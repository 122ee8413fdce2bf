/**
 * Makes a function that lets the first `count` different values through and gives "other" for all that come later.
 * Every value of a label is a series that is kept for ever: should a set that was meant to be closed turn out open,
 * the metrics get less exact instead of taking the memory.
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
