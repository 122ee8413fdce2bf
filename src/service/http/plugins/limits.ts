import { monitorEventLoopDelay } from "node:perf_hooks";
import type { FastifyReply, FastifyRequest } from "fastify";
import fp from "fastify-plugin";
import type { Metrics } from "../../../observe/metrics/metrics.ts";
import { problemDetails } from "../../../protocol/problems.ts";
import { createBoundedMap } from "../../../util/cache.ts";
import { addressGroup } from "../connections/open-connections.ts";
import { ProblemError } from "../problems/problem-error.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Counts these requests separately, so that a flood of one kind leaves room for the others. */
    countedAs?: "documents" | "probes";
    /** For probes: they cost nothing, and must be answered even during a flood. */
    unlimited?: boolean;
  }
}

/** How much the process handles at the same time before it refuses requests. */
export type PressureLimits = {
  /** The maximum number of settles that wait for their outcome; each takes some 20 KB. */
  maxSettles: number;
  /** The maximum number of verifies in progress. */
  maxVerifies: number;
  /** The maximum number of other requests in progress, until their answer is read; probes have the same limit separately. */
  maxOthers: number;
  /**
   * The share of the slots left by others that one organization may use: with 7/8, it always leaves an eighth of them.
   * 1 for all.
   */
  organizationShare: number;
  /** The maximum delay of the event loop, in milliseconds. */
  maxLagMs: number;
};

type Kind = "verify" | "settle" | "documents" | "probes" | "others";

/** Documents are large and read by people: a few at a time are enough. */
const maxDocuments = 32;

const retryAfterSeconds = 2;

/**
 * Refuses requests with 503 while the process is overloaded: before authentication if the event loop is late, and after
 * it if too many requests of the same kind are in progress. So callers without a key cannot use up the slots of
 * payments, and one organization cannot use all of them. Nothing was done for a refused payment, so it is safe to try
 * again. Probes are answered however late the event loop is. Without limits, only documents are limited.
 */
export const limitPressure = fp<{ limits: PressureLimits | undefined; metrics: Metrics }>(
  async (app, { limits, metrics }) => {
    const underWay: Record<Kind, number> = { verify: 0, settle: 0, documents: 0, probes: 0, others: 0 };
    metrics.observe({ underWay: () => ({ verify: underWay.verify, settle: underWay.settle }) });
    const unlimited = Number.POSITIVE_INFINITY;
    const most: Record<Kind, number> = {
      verify: limits?.maxVerifies ?? unlimited,
      settle: limits?.maxSettles ?? unlimited,
      documents: maxDocuments,
      probes: limits?.maxOthers ?? unlimited,
      others: limits?.maxOthers ?? unlimited,
    };
    const share = limits?.organizationShare ?? 1;
    const perOrganization = new Map<string, number>();
    let lag: ReturnType<typeof watchEventLoop> | undefined;
    if (limits !== undefined) {
      lag = watchEventLoop();
      app.addHook("onClose", async () => lag?.stop());
    }

    app.addHook("onRequest", (request, _reply, done) => {
      const isLate = limits !== undefined && lag !== undefined && lag.ms > limits.maxLagMs;
      if (isLate && kindOf(request) !== "probes") throw overloaded();
      done();
    });

    app.addHook("preParsing", (request, _reply, payload, done) => {
      if (request.exchange.end !== undefined) return done(null, payload);
      const kind = kindOf(request);
      if (underWay[kind] >= most[kind]) throw overloaded();
      if (request.caller !== null) {
        const organization = `${kind} ${request.caller.organization.id}`;
        const own = perOrganization.get(organization) ?? 0;
        if (own >= Math.ceil(share * (most[kind] - underWay[kind] + own))) throw overloaded();
        perOrganization.set(organization, own + 1);
        request.exchange.onEnd(() => {
          const left = (perOrganization.get(organization) ?? 0) - 1;
          if (left > 0) perOrganization.set(organization, left);
          else perOrganization.delete(organization);
        });
      }
      underWay[kind]++;
      request.exchange.onEnd(() => {
        underWay[kind]--;
      });
      done(null, payload);
    });
  },
);

function kindOf({ route }: FastifyRequest): Kind {
  return route.config.operation ?? route.config.countedAs ?? "others";
}

function overloaded(): ProblemError {
  return new ProblemError("overloaded", problemDetails.overloaded, { retryAfterSeconds });
}

/** How often the event loop is sampled, and the duration of a sample if nothing delays it, in milliseconds. */
const resolutionMs = 20;

/**
 * Measures the median delay of the event loop: one long garbage collection is no reason to refuse requests, many slow
 * turns are.
 */
function watchEventLoop(sampleMs = 1_000) {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  let ms = 0;
  const timer = setInterval(() => {
    if (delay.count > 0) ms = Math.max(0, delay.percentile(50) / 1e6 - resolutionMs);
    delay.reset();
  }, sampleMs).unref();

  return {
    /** The median delay of the turns in the last second, or of the last long turn, in milliseconds. */
    get ms() {
      return ms;
    },
    stop() {
      clearInterval(timer);
      delay.disable();
    },
  };
}

/** How many requests are accepted. */
export type RateLimits = {
  /** Per API key. */
  key: Rate;
  /** Per address (per /64 for IPv6), not counting requests with a valid key. */
  address: Rate;
};

/**
 * Refuses requests that come too fast, with 429. Before its key is checked, a request counts for its address; a valid
 * key takes that back and counts instead. So a flood without keys costs neither a hash nor a database query, and
 * customers behind one address do not use up each other's share.
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

/** Writes the header fields of draft-ietf-httpapi-ratelimit-headers-06, the best known version. */
function writeRateHeaders(reply: FastifyReply, { burst }: Rate, { remaining, fullInSeconds }: Taken): void {
  reply.header("ratelimit-limit", burst);
  reply.header("ratelimit-remaining", remaining);
  reply.header("ratelimit-reset", fullInSeconds);
}

/** The rate that is let through: `burst` at once, and `perSecond` in the long run. */
export type Rate = { burst: number; perSecond: number };

/** The result of taking a token. */
export type Taken = {
  allowed: boolean;
  /** How many more would be let through now. */
  remaining: number;
  /** Seconds until the bucket is full again, rounded up. */
  fullInSeconds: number;
  /** Seconds until the next one is let through, rounded up; 0 if it is now. */
  retryAfterSeconds: number;
};

/**
 * Token buckets by name, in bounded memory: each keeps only the time at which it will be full again (GCRA). Names come
 * from outside, so at most `maxNames` are kept. The longest idle are dropped first, which fills their buckets.
 */
export function createTokenBuckets(
  { burst, perSecond }: Rate,
  { maxNames = 20_000, now = () => performance.now() }: { maxNames?: number; now?: () => number } = {},
) {
  const tokenMs = 1_000 / perSecond;
  const capacityMs = burst * tokenMs;
  /** Keeps rounding from refusing the last token of a full bucket. */
  const slackMs = tokenMs / 1_000;
  const fullAt = createBoundedMap<string, number>(maxNames);

  return {
    take(name: string): Taken {
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

    /** Undoes one `take`. */
    giveBack(name: string): void {
      const known = fullAt.get(name);
      if (known !== undefined) fullAt.set(name, known - tokenMs);
    },
  };
}
