import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import type { ConnectionLimits } from "./connections/open-connections.ts";
import { connections } from "./plugins/connections.ts";
import { defaultTimeouts, serverTimeouts, type Timeouts } from "./timeouts.ts";

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
