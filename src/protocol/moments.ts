/** A day of UTC, in milliseconds. */
export const dayMs = 24 * 60 * 60 * 1000;

/** Seconds until the day (UTC) of a moment is over, rounded up. */
export const secondsLeftOfDay = (now: number) => Math.ceil((dayMs - (now % dayMs)) / 1000);

/** The last second that has a year of four digits. */
const lastShown = 253_402_300_799n;

/** Seconds as people say them: `45 s`, `5 min`, `83 h 20 min`, `12 days`. */
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

/** How far a time is from another, both unix seconds: `in 5 min`, `12 s ago`, `now`. */
export function formatDistance(time: bigint, now: bigint): string {
  if (time === now) return "now";
  return time > now ? `in ${formatSpan(time - now)}` : `${formatSpan(now - time)} ago`;
}

/** The date of unix seconds; undefined of a time that no person means. */
export function formatDate(seconds: bigint): string | undefined {
  if (seconds > lastShown) return undefined;
  return new Date(Number(seconds) * 1_000).toISOString().replace("T", " ").replace(".000Z", " UTC");
}

/**
 * A time as messages show it: unix seconds, the date, and how far that is from another time.
 *
 * @param now a placeholder in expected answers, which the distance is one in as well
 */
export function formatMoment(seconds: bigint, now: bigint | string): string {
  const date = formatDate(seconds);
  if (date === undefined) return `${seconds}`;
  return `${seconds} (${date}, ${typeof now === "bigint" ? formatDistance(seconds, now) : "<text>"})`;
}
