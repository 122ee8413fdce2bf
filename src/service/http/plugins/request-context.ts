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
    /** Identifies the service on the channels. */
    serviceId: string;
    /** A copy of `routeOptions`, which Fastify rebuilds on every access. */
    route: Pick<FastifyRequest["routeOptions"], "url" | "config">;
    /** The part of the payment that is read first; problems repeat it. */
    envelope: Envelope | undefined;
    /** The network of the envelope if it is a known one; the envelope may contain any text. */
    networkName: NetworkName | undefined;
    /** The payment, if it is well formed. */
    payment: PaymentRequest | undefined;
    /** The organization that the API key belongs to; null if the route needs no key and none was sent. */
    caller: Caller | null;
  }
  interface FastifyContextConfig {
    /** Selects the x402 members in the problems of this route. */
    operation?: Operation;
    /** Set if the route needs an API key, or accepts one. By default keys are ignored. */
    apiKey?: "required" | "optional";
  }
}

/**
 * Adds the fields of a request that other plugins read, and a request id to every answer: the caller's, or ours.
 * Register it first.
 */
export const requestContext = fp<{ serviceId: string }>(async (app, { serviceId }) => {
  app.decorateRequest("serviceId", serviceId);
  app.decorateRequest("route");
  app.decorateRequest("envelope", undefined);
  app.decorateRequest("networkName", undefined);
  app.decorateRequest("payment", undefined);

  // Hooks use callbacks instead of being async, because every request runs all of them.
  app.addHook("onRequest", (request, reply, done) => {
    reply.header("x-request-id", callerRequestId(request.headers["x-request-id"]) ?? request.id);
    request.route = request.routeOptions;
    done();
  });
});

/** The allowed form of a caller's request id, which is logged and sent back in a header. */
const format = /^[\w.:~@/+=-]{1,128}$/;

/** The caller's `X-Request-Id`, if it can be logged and sent back. */
export function callerRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && format.test(header) ? header : undefined;
}

/** Makes the logger of a request: every line has our own id, which is unique, and the caller's if there is one. */
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
 * Security headers for browsers: the defaults of helmet 8. They never change, but helmet builds them for every request,
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

/** Adds the security headers to every answer; routes may override them. */
export const securityHeaders = fp(async (app) => {
  app.addHook("onRequest", (_request, reply, done) => {
    reply.headers(headers);
    done();
  });
});

/** Refuses HTTP/1.1 requests without a Host header, as RFC 9112 requires, with a regular problem. */
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

/** The positions in the text of the digits of each of the 16 bytes. */
const places = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

const random = Buffer.alloc(256 * places.length);
let used = random.length;

/**
 * Makes a random UUID (version 4) as one flat string. The result of `crypto.randomUUID` consists of some seventeen
 * strings that all stay in memory with it: too many if ids of thousands of requests are kept.
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

/** Returns the caller that a request without a key acts for; null for none. */
export type CallerWithoutKey = () => Promise<Caller | null>;

/**
 * Reads `Authorization: <key>` or `Authorization: Bearer <key>` on routes that use it. Runs before the body is read. A
 * rejected key always gets the same 401, whatever the reason; but a missing key, an unset variable and text that cannot
 * be a key are reported as such.
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
    // A client built with an API key sends the header even if the key is empty.
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
