import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { connections } from "./plugins/connections.ts";
import { defaultTimeouts as timeouts } from "./timeouts.ts";

/** What holds the metrics: prom-client's `Registry`. */
export type MetricsRegister = { readonly contentType: string; metrics(): Promise<string> };

/**
 * `GET /metrics` for Prometheus, on a server of its own: callers of the service must not
 * see which networks and customers are busy, or how much gas money is left. It needs no key, so it belongs on an address
 * that only the collector reaches.
 */
export function createMetricsApp(register: MetricsRegister, logger: FastifyBaseLogger): FastifyInstance {
  const app = Fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    http: { headersTimeout: timeouts.headersMs },
  });
  app.register(connections, { limits: { max: 100, maxPerAddress: 50 }, timeouts });
  app.get("/metrics", async (_request, reply) =>
    reply.type(register.contentType).send(await register.metrics()),
  );
  return app;
}
