import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { defaultTimeouts, serverTimeouts, type Timeouts } from "./connections/listen.ts";
import { type ConnectionLimits, connections } from "./connections/open-connections.ts";

/**
 * A server beside the service, on an address that only operators reach: few connections, small bodies, the time-outs of
 * the service, and no line in the log for each request.
 */
export function createInternalApp(
  logger: FastifyBaseLogger,
  limits: ConnectionLimits,
  timeouts: Timeouts = defaultTimeouts,
): FastifyInstance {
  const app = Fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    ...serverTimeouts(timeouts),
    bodyLimit: 1_024,
  });
  app.register(connections, { limits, timeouts });
  return app;
}

/** The metrics: prom-client's `Registry`. */
export type MetricsRegister = { readonly contentType: string; metrics(): Promise<string> };

/**
 * `GET /metrics` for Prometheus, on a server of its own: callers of the service must not
 * see which networks and customers are busy, or how much gas money is left. It needs no key, so it belongs on an address
 * that only the collector reaches.
 */
export function createMetricsApp(register: MetricsRegister, logger: FastifyBaseLogger): FastifyInstance {
  const app = createInternalApp(logger, { max: 100, maxPerAddress: 50 });
  app.get("/metrics", async (_request, reply) =>
    reply.type(register.contentType).send(await register.metrics()),
  );
  app.setNotFoundHandler((_, reply) => reply.code(404).send({ error: "There is GET /metrics" }));
  return app;
}
