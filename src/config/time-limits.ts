import type { X402Version } from "../protocol/requests.ts";

/**
 * How long a settle waits for its outcome unless configured otherwise, in milliseconds. Clients of version 1 cannot ask
 * again, so theirs waits longer.
 */
export const settleWaitDefaultsMs: Readonly<Record<X402Version, number>> = { 1: 80_000, 2: 45_000 };

/** What may be configured instead, for both versions, in milliseconds. */
export const settleWaitBoundsMs = { least: 100, most: 600_000 } as const;

/** The most that the time of a local chain moves forward at once, in seconds: a hundred years. */
export const longestAdvanceSeconds = 3_155_760_000;
