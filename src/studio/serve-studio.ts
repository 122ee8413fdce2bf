import type { FastifyInstance } from "fastify";
import type { ExplainContext } from "../explain/explain.ts";
import { createPaymentLog } from "./payment-log.ts";
import { studioRoutes } from "./studio-routes.ts";

/** Keeps a log of the service with this id, and serves it and its page beside the service. */
export function serveStudio(
  app: FastifyInstance,
  { serviceId, contracts }: { serviceId: string; contracts: ExplainContext["contracts"] },
): { clear(): void; close(): void } {
  const log = createPaymentLog(serviceId);
  app.register(async (scope) => studioRoutes(scope, { log, contracts }));
  return log;
}
