import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import fp from "fastify-plugin";
import { channels } from "../../../observe/channels/channels.ts";
import { situationOfProblem } from "../../../protocol/catalogue.ts";
import { problemBody, problemDetails, problemKinds, problemMediaType } from "../../../protocol/problems.ts";
import { shortenPath } from "../../../protocol/routes.ts";
import { noSuchRoute } from "../../../protocol/unknown-route.ts";
import { UndeterminedError } from "../../../util/errors.ts";
import { classify, ProblemError } from "../problems/problem-error.ts";
import { peekAtBody } from "./read-bodies.ts";
import { callerRequestId } from "./request-context.ts";
import { logFieldsOf } from "./request-log.ts";

declare module "fastify" {
  interface FastifyInstance {
    /** Answers a request that has no route; always throws. */
    refuseUnknownPath(request: FastifyRequest, reply: FastifyReply): never;
  }
}

/**
 * The only place where an error becomes an answer: an RFC 9457 problem with the x402 members of its route. Paths
 * without a route are errors too. Register it before the routes.
 */
export const errorHandler = fp(async (app) => {
  const allowedMethods = collectAllowedMethods(app);

  app.setErrorHandler((error, request, reply) => {
    const problem = classify(error);
    const { kind, detail, retryAfterSeconds } = problem;
    const { status, name } = kind;
    const { operation } = request.route.config;
    request.result = {
      outcome: status >= 500 ? "undetermined" : "refused",
      reason: name,
      message: detail,
      ...(operation && { situation: situationOfProblem(operation, status) }),
    };
    if (status >= 500 && !(error instanceof ProblemError)) {
      // A node's failure is not a bug of the service, and does not matter once the caller has left.
      const isForeseen = error instanceof UndeterminedError;
      const level = !isForeseen ? "error" : request.exchange.end === "cut" ? "debug" : "warn";
      request.log[level]({ ...logFieldsOf(request), err: error }, "no verdict");
    }
    if (retryAfterSeconds !== undefined) reply.header("retry-after", retryAfterSeconds);
    if (status === 401) reply.header("www-authenticate", "Bearer");
    reply.code(status).type(problemMediaType);
    const body = problemBody(problem, { operation, requestId: request.id, envelope: request.envelope });
    const isUnread = kind === problemKinds.tooLarge || kind === problemKinds.mediaType;
    if (!isUnread || operation === undefined || !channels.answer.isHeard()) return reply.send(body);
    return peekAtBody(request).then(() => reply.send(body));
  });

  app.setNotFoundHandler(refuseUnknownPath);
  app.decorate("refuseUnknownPath", refuseUnknownPath);

  function refuseUnknownPath(request: FastifyRequest, reply: FastifyReply): never {
    const [whole = ""] = request.url.split("?");
    const path = shortenPath(whole);
    const allowed = allowedMethods(whole);
    if (allowed.length > 0) reply.header("allow", allowed.join(", "));
    const problem =
      allowed.length > 0
        ? new ProblemError("methodNotAllowed", problemDetails.methodNotAllowed(request.method, path, allowed))
        : new ProblemError("notFound", noSuchRoute(request.method, path));
    const { serviceId, id: requestId, method } = request;
    channels.unrouted.publish(() => ({
      kind: "unrouted",
      at: Date.now(),
      serviceId,
      requestId,
      method,
      path,
      status: allowed.length > 0 ? 405 : 404,
      message: problem.message,
    }));
    throw problem;
  }
});

/**
 * Answers requests for unknown paths before their body is read, since nothing in it could matter. Register it after the
 * plugins that limit requests.
 */
export const refuseUnknownPaths = fp(async (app) => {
  app.addHook("onRequest", (request, reply, done) => {
    if (request.is404) app.refuseUnknownPath(request, reply);
    done();
  });
});

/** Answers HTTP requests that the router cannot route: a malformed or overlong path. Fastify runs no hooks for them. */
export function answerUnroutable(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const problem = classify(
    error.code === "FST_ERR_MAX_PARAM_LENGTH"
      ? new ProblemError("uriTooLong", problemDetails.uriTooLong)
      : new ProblemError("malformed", problemDetails.undecodable),
  );
  void reply
    .code(problem.kind.status)
    .header("x-content-type-options", "nosniff")
    .header("x-request-id", callerRequestId(request.headers["x-request-id"]) ?? request.id)
    .type(problemMediaType)
    .send(problemBody(problem, { operation: undefined, requestId: request.id, envelope: undefined }));
}

/**
 * Collects the methods of routes registered from now on, except those with a wildcard. Returns a function that lists
 * the methods of a path; none if there is no such path.
 */
function collectAllowedMethods(app: FastifyInstance) {
  const routes = new Map<string, { matches: RegExp; methods: Set<string> }>();
  app.addHook("onRoute", ({ url, method }) => {
    if (url.includes("*")) return;
    const route = routes.get(url) ?? { matches: patternOf(url), methods: new Set<string>() };
    for (const one of [method].flat()) route.methods.add(one);
    routes.set(url, route);
  });
  return (path: string) => {
    const found = [...routes.values()].filter(({ matches }) => matches.test(path));
    return [...new Set(found.flatMap(({ methods }) => [...methods]))].sort();
  };
}

/** A pattern such as that of `/v1/settlements/:id`, with or without a trailing slash. */
function patternOf(url: string): RegExp {
  const parts = url
    .split("/")
    .map((part) => (part.startsWith(":") ? "[^/]+" : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")));
  return new RegExp(`^${parts.join("/")}/?$`);
}
