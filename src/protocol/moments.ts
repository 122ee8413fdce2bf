/** A UTC day, in milliseconds. */
export const dayMs = 24 * 60 * 60 * 1000;

/** Seconds until the current UTC day ends, rounded up; `now` is in Unix milliseconds. */
export const secondsLeftOfDay = (now: number) => Math.ceil((dayMs - (now % dayMs)) / 1000);

/** The last second with a four-digit year. */
const lastShown = 253_402_300_799n;

/** Seconds for people: `45 s`, `5 min`, `83 h 20 min`, `12 days`. */
export function formatSpan(seconds: bigint): string {
  if (seconds < 120n) return `${seconds} s`;
  const [size, name, smaller, rest] =
    seconds < 7_200n
      ? ([60n, "min", 1n, "s"] as const)
      : seconds < 864_000n
        ? ([3_600n, "h", 60n, "min"] as const)
        : ([86_400n, "days", 3_600n, "h"] as const);
  const left = (seconds % size) / smaller;
  return `${seconds / size} ${name}${left === 0n ? "" : ` ${left} ${rest}`}`;
}

/** The distance between two times, both Unix seconds: `in 5 min`, `12 s ago`, `now`. */
export function formatDistance(time: bigint, now: bigint): string {
  if (time === now) return "now";
  return time > now ? `in ${formatSpan(time - now)}` : `${formatSpan(now - time)} ago`;
}

/** Formats Unix seconds as a date; undefined after the year 9999. */
export function formatDate(seconds: bigint): string | undefined {
  if (seconds > lastShown) return undefined;
  return new Date(Number(seconds) * 1_000).toISOString().replace("T", " ").replace(".000Z", " UTC");
}

/**
 * A time for messages: Unix seconds, the date, and the distance from another time.
 *
 * @param now if this is a placeholder, as in expected responses, the distance becomes one as well
 */
export function formatMoment(seconds: bigint, now: bigint | string): string {
  const date = formatDate(seconds);
  if (date === undefined) return `${seconds}`;
  return `${seconds} (${date}, ${typeof now === "bigint" ? formatDistance(seconds, now) : "<text>"})`;
}
