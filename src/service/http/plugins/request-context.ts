import { randomFillSync } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { FastifyBaseLogger, FastifyRequest } from "fastify";
import fp from "fastify-plugin";
import type { NetworkName } from "../../../protocol/networks.ts";
import { noHost, type Operation, unauthorizedDetail } from "../../../protocol/problems.ts";
import type { Envelope, PaymentRequest } from "../../../protocol/requests.ts";
import type { Caller, Organizations } from "../../organizations/organizations.ts";
import { ProblemError } from "../problems/problem-error.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Names the service on the channels. */
    serviceId: string;
    /** `routeOptions`, which Fastify makes anew at every access. */
    route: Pick<FastifyRequest["routeOptions"], "url" | "config">;
    /** The part of the payment that was read first; problems repeat it. */
    envelope: Envelope | undefined;
    /** The network of the envelope, if it is a known one; the envelope may hold any text. */
    networkName: NetworkName | undefined;
    /** The payment, where it is well formed. */
    payment: PaymentRequest | undefined;
    /** The organization that the API key belongs to; null where a route needs no key and none was sent. */
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** Which x402 members the problems of this route carry. */
    operation?: Operation;
    /** True if the route needs an API key, or takes one when it is sent. By default keys are not looked at. */
    apiKey?: "required" | "optional";
  }
}

/** The members of a request that other plugins read; every answer has the caller's request id, or ours. Registered first. */
export const requestContext = fp<{ serviceId: string }>(async (app, { serviceId }) => {
  app.decorateRequest("serviceId", serviceId);
  app.decorateRequest("route");
  app.decorateRequest("envelope", undefined);
  app.decorateRequest("networkName", undefined);
  app.decorateRequest("payment", undefined);

  // Hooks call back instead of being async: every request runs all of them.
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", callerRequestId(request.headers["x-request-id"]) ?? request.id);
    request.route = request.routeOptions;
    done();
  });
});

/** The allowed form of a caller's request id: it is logged, and sent back in a header. */
const format = /^[\w.:~@/+=-]{1,128}$/;

/** The `X-Request-Id` of a caller, where it is one that can be logged and sent back. */
export function callerRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && format.test(header) ? header : undefined;
}

/**
 * Makes the logger of a request: every line has our own id, which is never the same for two requests, and the caller's
 * where there is one.
 */
export function createRequestLogger(
  logger: FastifyBaseLogger,
  bindings: object,
  options: object,
  request: Pick<IncomingMessage, "headers">,
): FastifyBaseLogger {
  const callerId = callerRequestId(request.headers["x-request-id"]);
  return logger.child({ ...bindings, ...(callerId !== undefined && { requestId: callerId }) }, options);
}

/**
 * Security headers for browsers: the defaults of helmet 8. They never change, and helmet builds them for every request,
 * which took a twentieth of a verify.
 */
const headers = {
  "content-security-policy":
    "default-src 'self';base-uri 'self';font-src 'self' https: data:;form-action 'self';frame-ancestors 'self';img-src 'self' data:;object-src 'none';script-src 'self';script-src-attr 'none';style-src 'self' https: 'unsafe-inline';upgrade-insecure-requests",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "origin-agent-cluster": "?1",
  "referrer-policy": "no-referrer",
  "strict-transport-security": "max-age=31536000; includeSubDomains",
  "x-content-type-options": "nosniff",
  "x-dns-prefetch-control": "off",
  "x-download-options": "noopen",
  "x-frame-options": "SAMEORIGIN",
  "x-permitted-cross-domain-policies": "none",
  "x-xss-protection": "0",
};

/** Puts the security headers on every answer; routes may set their own instead. */
export const securityHeaders = fp(async (app) => {
  app.addHook("onRequest", (_request, reply, done) => {
    reply.headers(headers);
    done();
  });
});

/** Refuses HTTP/1.1 requests without a Host header, as RFC 9112 wants it, with a problem like any other. */
export const requireHost = fp(async (app) => {
  app.addHook("onRequest", ({ raw }, _reply, done) => {
    if (raw.headers.host === undefined && raw.httpVersion === "1.1") {
      throw new ProblemError("malformed", noHost);
    }
    done();
  });
});

const digits = Buffer.from("0123456789abcdef");
const text = Buffer.from("00000000-0000-4000-8000-000000000000");

/** Where the digits of each of the 16 bytes stand in the text. */
const places = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

const random = Buffer.alloc(256 * places.length);
let used = random.length;

/**
 * A random UUID (version 4) as one string. That of `crypto.randomUUID` is put together of some seventeen strings, all of which
 * stay in memory with it: too many where ids of thousands of requests are kept.
 */
export function createUuid(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  // The version, and the variant of RFC 9562.
  random[used + 6] = ((random[used + 6] ?? 0) & 0x0f) | 0x40;
  random[used + 8] = ((random[used + 8] ?? 0) & 0x3f) | 0x80;
  for (const place of places) {
    const byte = random[used++] ?? 0;
    text[place] = digits[byte >> 4] ?? 0;
    text[place + 1] = digits[byte & 15] ?? 0;
  }
  return text.toString("latin1");
}

/** The caller that a request without a key acts for; null for none. */
export type CallerWithoutKey = () => Promise<Caller | null>;

/**
 * Reads `Authorization: <key>` or `Authorization: Bearer <key>` on routes that ask for it. Runs before the body is
 * read. A key that is not accepted has the same 401 whatever is wrong with it; one that is missing, a variable that was not
 * set, and what no key can be, are said to be that.
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
    // A client that is built with an API key sends the header, also where the key is empty.
    if (/^(Bearer)? *$/i.test(header ?? "") && callerWithoutKey !== undefined) {
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
