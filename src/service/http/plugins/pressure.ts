import { monitorEventLoopDelay } from "node:perf_hooks";
import type { FastifyRequest } from "fastify";
import fp from "fastify-plugin";
import type { Metrics } from "../../../observe/metrics/metrics.ts";
import { problemDetails } from "../../../protocol/problems.ts";
import { ProblemError } from "../problems/problem-error.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Requests that are counted apart from others, so that a flood of one kind leaves places for the other kinds. */
    countedAs?: "documents" | "probes";
  }
}

/** How much the process does at a time before it refuses requests. */
export type PressureLimits = {
  /** Settles that may wait for their outcome at a time; each takes some 20 KB. */
  maxSettles: number;
  /** Verifies that may be under way at a time. */
  maxVerifies: number;
  /** Other requests that may be under way at a time, until their answer is read; probes have as many places again. */
  maxOthers: number;
  /**
   * The part of these places that one organization may take, of those that the others leave: with 7/8, it always leaves
   * an eighth of them. 1 for all.
   */
  organizationShare: number;
  /** Turns of the event loop may be late by this much, in milliseconds. */
  maxLagMs: number;
};

type Kind = "verify" | "settle" | "documents" | "probes" | "others";

/** Documents are large, and people read them: few at a time are enough. */
const maxDocuments = 32;

const retryAfterSeconds = 2;

/**
 * Refuses requests with 503 while the process is overloaded: before authentication when the event loop is late, and after
 * it when too many of their kind are under way, so that callers without a key cannot take up the places of payments. Nor
 * can one organization take all of them. Nothing was done for such a payment, so trying again is safe. Probes are answered
 * however late the event loop is. Without limits, only documents are limited.
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
    let lag: EventLoopLag | undefined;
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

/** How late the event loop is. */
export type EventLoopLag = {
  /** Milliseconds by which half of the turns of the last second, or of the last long one, were late. */
  readonly ms: number;
  stop(): void;
};

/** How often the loop's turns are measured, and the time they take when nothing holds them up. */
const resolutionMs = 20;

/**
 * Measures the delay of the event loop by its median: one long garbage collection is no reason to refuse requests, many
 * slow turns are.
 */
export function watchEventLoop(sampleMs = 1_000): EventLoopLag {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  let ms = 0;
  const timer = setInterval(() => {
    if (delay.count > 0) ms = Math.max(0, delay.percentile(50) / 1e6 - resolutionMs);
    delay.reset();
  }, sampleMs).unref();

  return {
    get ms() {
      return ms;
    },
    stop() {
      clearInterval(timer);
      delay.disable();
    },
  };
}
