import type { FastifyRequest } from "fastify";
import type { Caller, Organizations } from "../../organizations/organizations.ts";
import { problemDetails } from "../../protocol/problems.ts";
import { ProblemError } from "./problems.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Whom the API key speaks for; null on a verify without a key, where that is allowed. */
    caller: Caller | null;
  }
}

/**
 * Reads `Authorization: <key>` or `Authorization: Bearer <key>`. Runs before the body is read. Every refusal is the
 * same 401, whatever is wrong with the key.
 */
export function authenticate(organizations: Organizations, options: { anonymous?: boolean } = {}) {
  return async (request: FastifyRequest): Promise<void> => {
    const header = request.headers.authorization;
    if (header === undefined && options.anonymous === true) return;
    const key = header?.replace(/^Bearer +/i, "").trim();
    const caller = key ? await organizations.authenticate(key) : null;
    if (caller === null) {
      throw new ProblemError("unauthorized", problemDetails.unauthorized);
    }
    request.caller = caller;
  };
}

/** The caller of a route that admits nobody without a key. */
export function callerOf(request: FastifyRequest): Caller {
  if (request.caller === null) throw new Error("the route has no authentication hook");
  return request.caller;
}
