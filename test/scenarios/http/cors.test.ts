import { afterEach, expect, test } from "vitest";
import { type StubApp, startStubApp } from "../../support/http/stub-app.ts";

/* CORS_ORIGINS in the service: no page of another origin may call it unless it is named. */

let app: StubApp;
afterEach(() => app.close());

function preflight(origin: string): Promise<Response> {
  return fetch(`${app.origin}/v1/settle`, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization,content-type",
    },
  });
}

test("by default pages of other origins get nothing to go by", async () => {
  app = await startStubApp({});
  const answer = await preflight("https://shop.example");
  expect(answer.status).toBe(405);
  expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
});

test("pages of the origins that are named may call, and others may not", async () => {
  app = await startStubApp({ corsOrigins: ["https://shop.example"] });
  const answer = await preflight("https://shop.example");
  expect([answer.status, answer.headers.get("access-control-allow-origin")]).toEqual([
    204,
    "https://shop.example",
  ]);
  expect((await preflight("https://other.example")).headers.get("access-control-allow-origin")).toBeNull();
  // A refusal too can be read by the page that asked.
  const refused = await fetch(`${app.origin}/v1/settle`, {
    method: "POST",
    headers: { origin: "https://shop.example" },
  });
  expect([refused.status, refused.headers.get("access-control-allow-origin")]).toEqual([
    401,
    "https://shop.example",
  ]);
});
