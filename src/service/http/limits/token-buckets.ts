import { createBoundedMap } from "../../../util/bounded-map.ts";

/** How much is let through: `burst` at once, and `perSecond` in the long run. */
export type Rate = { burst: number; perSecond: number };

/** Whether a bucket let one through, and its level. */
export type Taken = {
  allowed: boolean;
  /** How many more would be let through now. */
  remaining: number;
  /** Until the bucket is full again, rounded up. */
  fullInSeconds: number;
  /** Until one more is let through, rounded up; 0 when it is now. */
  retryAfterSeconds: number;
};

/** One token bucket per name. */
export type TokenBuckets = {
  take(name: string): Taken;
  /** Undoes one `take`. */
  giveBack(name: string): void;
};

/**
 * Token buckets in bounded memory: of each it keeps one time, that at which it will be full again (GCRA). Names come
 * from outside, so at most `maxNames` are remembered; those that were idle for the longest go first, which fills their
 * buckets.
 */
export function createTokenBuckets(
  { burst, perSecond }: Rate,
  { maxNames = 20_000, now = () => performance.now() }: { maxNames?: number; now?: () => number } = {},
): TokenBuckets {
  const tokenMs = 1_000 / perSecond;
  const capacityMs = burst * tokenMs;
  /** Rounding must not refuse the last token of a full bucket. */
  const slackMs = tokenMs / 1_000;
  const fullAt = createBoundedMap<string, number>(maxNames);

  return {
    take(name) {
      const time = now();
      const spentMs = Math.max(0, (fullAt.get(name) ?? 0) - time);
      const freeMs = capacityMs + slackMs - spentMs;
      const allowed = freeMs >= tokenMs;
      const left = allowed ? freeMs - tokenMs : freeMs;
      fullAt.renew(name, time + spentMs + (allowed ? tokenMs : 0));
      return {
        allowed,
        remaining: Math.floor(left / tokenMs),
        fullInSeconds: Math.ceil((capacityMs - left) / 1_000),
        retryAfterSeconds: allowed ? 0 : Math.ceil((tokenMs - freeMs) / 1_000),
      };
    },

    giveBack(name) {
      const known = fullAt.get(name);
      if (known !== undefined) fullAt.set(name, known - tokenMs);
    },
  };
}
