import type { FastifyRequest } from "fastify";
import fp from "fastify-plugin";
import { unauthorizedDetail } from "../../../protocol/problems.ts";
import type { Caller, Organizations } from "../../organizations/organizations.ts";
import { ProblemError } from "../problems/problem-error.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The organization that the API key belongs to; null where a route needs no key and none was sent. */
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** Whether the route needs an API key, or takes one when it is sent. By default keys are not looked at. */
    apiKey?: "required" | "optional";
  }
}

/** The caller that a request without a key acts for; null for none. */
export type CallerWithoutKey = () => Promise<Caller | null>;

/**
 * Reads `Authorization: <key>` or `Authorization: Bearer <key>` on routes that ask for it. Runs before the body is
 * read. A key that is not accepted has the same 401 whatever is wrong with it; one that is missing, or a variable that was
 * not set, is said to be that.
 */
export const authentication = fp<{
  organizations: Organizations;
  callerWithoutKey: CallerWithoutKey | undefined;
}>(async (app, { organizations, callerWithoutKey }) => {
  app.decorateRequest("caller", null);

  app.addHook("onRequest", async (request) => {
    const { apiKey } = request.route.config;
    const header = request.headers.authorization;
    if (apiKey === undefined || (apiKey === "optional" && header === undefined)) return;
    if (header === undefined && callerWithoutKey !== undefined) {
      request.caller = await callerWithoutKey();
      if (request.caller !== null) return;
    }
    const key = header?.replace(/^Bearer +/i, "").trim();
    const caller = key ? await organizations.authenticate(key) : null;
    if (caller === null) throw new ProblemError("unauthorized", unauthorizedDetail(header));
    request.caller = caller;
  });
});

/** The caller of a route that needs an API key. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw new Error("the route does not ask for an API key");
  return request.caller;
}
