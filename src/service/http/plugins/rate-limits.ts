import type { FastifyReply } from "fastify";
import fp from "fastify-plugin";
import { createBoundedMap } from "../../../util/cache.ts";
import { addressGroup } from "../connections/open-connections.ts";
import { ProblemError } from "../problems/problem-error.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** For probes: they cost nothing, and must be answered during a flood too. */
    unlimited?: boolean;
  }
}

/** How many requests are taken. */
export type RateLimits = {
  /** From one API key. */
  key: Rate;
  /** From one address (a /64 of IPv6), not counting those with a good key. */
  address: Rate;
};

/**
 * Refuses requests that come too fast, with 429. Before its key is checked, a request counts for its address; a good key
 * takes that back and counts instead. So a flood without keys costs neither a hash nor a database query, and customers
 * behind one address do not use up each other's share.
 */
export const limitRates = fp<RateLimits>(async (app, limits) => {
  const addresses = createTokenBuckets(limits.address);
  const keys = createTokenBuckets(limits.key);

  app.addHook("onRequest", (request, reply, done) => {
    if (request.route.config.unlimited === true) return done();
    const taken = addresses.take(addressGroup(request.ip));
    writeRateHeaders(reply, limits.address, taken);
    if (!taken.allowed) throw tooMany("This address sends too many requests without a good API key", taken);
    done();
  });

  // The first hook after authentication.
  app.addHook("preParsing", (request, reply, payload, done) => {
    if (request.caller === null) return done(null, payload);
    addresses.giveBack(addressGroup(request.ip));
    const taken = keys.take(request.caller.keyId);
    writeRateHeaders(reply, limits.key, taken);
    if (!taken.allowed) throw tooMany("This API key sends too many requests", taken);
    done(null, payload);
  });
});

function tooMany(what: string, { retryAfterSeconds }: Taken): ProblemError {
  return new ProblemError("tooManyRequests", `${what}; try again in ${retryAfterSeconds} s`, {
    retryAfterSeconds,
  });
}

/** The header fields of draft-ietf-httpapi-ratelimit-headers-06, which clients know best. */
function writeRateHeaders(reply: FastifyReply, { burst }: Rate, { remaining, fullInSeconds }: Taken): void {
  reply.header("ratelimit-limit", burst);
  reply.header("ratelimit-remaining", remaining);
  reply.header("ratelimit-reset", fullInSeconds);
}

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
