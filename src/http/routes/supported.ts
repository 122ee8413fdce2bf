import type { FastifyPluginAsync } from "fastify";
import type { Facilitator } from "../../facilitator/facilitator.ts";

/** `GET /supported`: the kinds of payment that are taken. */
export const supportedRoute: FastifyPluginAsync<{ facilitator: Facilitator }> = async (
  app,
  { facilitator },
) => {
  app.get("/supported", () => facilitator.supported());
};
