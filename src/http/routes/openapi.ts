import type { FastifyPluginAsync } from "fastify";
import { describeService } from "../../protocol/openapi.ts";

/** `GET /openapi.json`; made when it is first asked for. */
export const openApiRoute: FastifyPluginAsync = async (app) => {
  let document: object | undefined;
  app.get("/openapi.json", () => {
    document ??= describeService();
    return document;
  });
};
