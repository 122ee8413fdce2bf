import Fastify from "fastify";
import { expect, test } from "vitest";
import { pageRoutes } from "./page-routes.ts";

test("in a checkout that was never built, the page itself says what to do", async () => {
  await using app = Fastify();
  pageRoutes(app, new URL("./never-built/", import.meta.url));
  const answer = await app.inject({ url: "/studio" });
  expect(answer.statusCode).toBe(503);
  expect(answer.headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(answer.body).toContain("npm run build");
  expect((await app.inject({ url: "/studio/index.js" })).statusCode).toBe(404);
});
