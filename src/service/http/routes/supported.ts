import type { FastifyPluginAsync } from "fastify";
import type { Facilitator } from "../../facilitator/facilitator.ts";
import { urlsOf } from "./urls.ts";

/** `GET /supported`: the kinds of payment that are taken. */
export const supportedRoute: FastifyPluginAsync<{ facilitator: Facilitator }> = async (
  app,
  { facilitator },
) => {
  for (const url of urlsOf("supported")) app.get(url, () => facilitator.supported());
};
