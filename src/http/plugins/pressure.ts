import type { FastifyInstance } from "fastify";
import { problemDetails } from "../../protocol/problems.ts";
import { type EventLoopLag, watchEventLoop } from "./event-loop-lag.ts";
import { ProblemError } from "./problems.ts";

/** What the process takes on before it turns requests away. */
export type PressureLimits = {
  /** Settles that may wait for their outcome at a time; each takes some 20 KB. */
  maxSettles: number;
  /** Verifies that may be under way at a time. */
  maxVerifies: number;
  /** Turns of the event loop may be late by this much, in milliseconds. */
  maxLagMs: number;
};

/** Requests that are being answered. */
export type UnderWay = Record<"verify" | "settle", number>;

const retryAfterSeconds = 2;

/**
 * Turns verify and settle away with 503 while the process has more to do than it can: before authentication when the
 * event loop is late, and after it when too many are under way already, so that nobody without a key can take up the
 * places. Nothing was looked at then, so trying again is safe.
 *
 * @returns what is under way, kept up to date.
 */
export function limitPressure(app: FastifyInstance, limits: PressureLimits | undefined): UnderWay {
  const underWay: UnderWay = { verify: 0, settle: 0 };
  const most = limits && { verify: limits.maxVerifies, settle: limits.maxSettles };
  let lag: EventLoopLag | undefined;
  if (limits !== undefined) {
    lag = watchEventLoop();
    app.addHook("onClose", async () => lag?.stop());
  }

  app.addHook("onRequest", (request, _reply, done) => {
    const isLate = limits !== undefined && lag !== undefined && lag.ms > limits.maxLagMs;
    if (isLate && request.route.config.operation !== undefined) throw overloaded();
    done();
  });

  app.addHook("preParsing", (request, _reply, payload, done) => {
    const { operation } = request.route.config;
    if (operation === undefined || request.exchange.end !== undefined) return done(null, payload);
    if (most !== undefined && underWay[operation] >= most[operation]) throw overloaded();
    underWay[operation]++;
    request.exchange.onEnd(() => {
      underWay[operation]--;
    });
    done(null, payload);
  });
  return underWay;
}

function overloaded(): ProblemError {
  return new ProblemError("overloaded", problemDetails.overloaded, {
    retryAfterSeconds,
  });
}
