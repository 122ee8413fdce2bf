import fp from "fastify-plugin";
import { noHost } from "../../../protocol/problems.ts";
import { ProblemError } from "../problems/problem-error.ts";

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
