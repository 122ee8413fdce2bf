import Fastify from "fastify";
import { expect, test } from "vitest";
import { createUuid, securityHeaders } from "./request-context.ts";

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

test("ids are random UUIDs of version 4, each another one", () => {
  const ids = Array.from({ length: 2_000 }, createUuid);
  expect(new Set(ids).size).toBe(ids.length);
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
  expect(ids.filter((id) => !uuid.test(id))).toEqual([]);
  // Every place that is not fixed takes every digit.
  const seen = Array.from({ length: 36 }, (_, place) => new Set(ids.map((id) => id[place])).size);
  expect(seen.filter((count) => count === 16)).toHaveLength(30);
  expect(seen.filter((count) => count === 4)).toHaveLength(1);
});
