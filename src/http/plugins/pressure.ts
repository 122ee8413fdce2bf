import fp from "fastify-plugin";
import type { Metrics } from "../../metrics/metrics.ts";
import { problemDetails } from "../../protocol/problems.ts";
import { type EventLoopLag, watchEventLoop } from "../limits/event-loop-lag.ts";
import { ProblemError } from "../problems/problem-error.ts";

/** What the process takes on before it turns requests away. */
export type PressureLimits = {
  /** Settles that may wait for their outcome at a time; each takes some 20 KB. */
  maxSettles: number;
  /** Verifies that may be under way at a time. */
  maxVerifies: number;
  /** Turns of the event loop may be late by this much, in milliseconds. */
  maxLagMs: number;
};

const retryAfterSeconds = 2;

/**
 * Turns verify and settle away with 503 while the process has more to do than it can: before authentication when the
 * event loop is late, and after it when too many are under way already, so that a caller without a key cannot take up
 * the places. Nothing was done for the payment then, so trying again is safe. Without limits it counts only.
 */
export const limitPressure = fp<{ limits: PressureLimits | undefined; metrics: Metrics }>(
  async (app, { limits, metrics }) => {
    const underWay = { verify: 0, settle: 0 };
    metrics.observe({ underWay: () => underWay });
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
  },
);

function overloaded(): ProblemError {
  return new ProblemError("overloaded", problemDetails.overloaded, { retryAfterSeconds });
}
