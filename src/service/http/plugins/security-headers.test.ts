import Fastify from "fastify";
import { expect, test } from "vitest";
import { securityHeaders } from "./security-headers.ts";

async function headersOf(url: string) {
  const app = Fastify();
  await app.register(securityHeaders);
  app.setErrorHandler((_error, _request, reply) => reply.code(503).send({}));
  app.setNotFoundHandler((_request, reply) => reply.code(404).send({}));
  app.get("/good", async () => ({}));
  app.get("/bad", async () => {
    throw new Error("bad");
  });
  app.get("/page", (_request, reply) =>
    reply.header("content-security-policy", "default-src 'none'").send(""),
  );
  const { headers } = await app.inject(url);
  for (const name of ["content-type", "content-length", "date", "connection"]) delete headers[name];
  return headers;
}

test.each(["/good", "/bad", "/missing"])("every answer has the security headers: %s", async (url) => {
  expect(await headersOf(url)).toMatchInlineSnapshot(`
    {
      "content-security-policy": "default-src 'self';base-uri 'self';font-src 'self' https: data:;form-action 'self';frame-ancestors 'self';img-src 'self' data:;object-src 'none';script-src 'self';script-src-attr 'none';style-src 'self' https: 'unsafe-inline';upgrade-insecure-requests",
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
    }
  `);
});

test("a page may set its own policy", async () => {
  expect((await headersOf("/page"))["content-security-policy"]).toBe("default-src 'none'");
});
