import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { createInternalApp } from "./internal-app.ts";

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
