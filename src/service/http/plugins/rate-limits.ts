import type { FastifyReply } from "fastify";
import fp from "fastify-plugin";
import { addressGroup } from "../limits/address-group.ts";
import { createTokenBuckets, type Rate, type Taken } from "../limits/token-buckets.ts";
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
