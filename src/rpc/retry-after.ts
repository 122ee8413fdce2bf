/**
 * Milliseconds that a `Retry-After` header asks to wait (RFC 9110: seconds, or a date); undefined when it is missing
 * or neither. `now` is in unix milliseconds.
 */
export function readRetryAfter(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  // Date.parse takes much that is no date of HTTP, such as "-1" or "5 minutes".
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return undefined;
  const until = Date.parse(text);
  return Number.isNaN(until) ? undefined : Math.max(0, until - now);
}
