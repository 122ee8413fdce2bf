import fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { controlRefusal, foreign } from "./local-server.ts";

const loopback = { host: "127.0.0.1" };

test.each([
  { host: "127.0.0.1:4402" },
  { host: "localhost:4402" },
  { host: "LOCALHOST" },
  { host: "[::1]:4402" },
  { host: "127.0.0.1:4402", origin: "http://127.0.0.1:4402" },
  { host: "127.0.0.1:4402", origin: "http://localhost:3000" },
])("a program or page of this machine is let in: %o", (headers) => {
  expect(foreign(headers, loopback)).toBeUndefined();
});

test.each([
  { host: "evil.example" },
  { host: "evil.example:4402" },
  { host: "127.0.0.1.evil.example:4402" },
  { host: "localhost.evil.example" },
  { host: "192.168.1.7:4402" },
  { host: "" },
  { host: undefined },
  { host: "evil.example@127.0.0.1:4402" },
  { host: "127.0.0.1#evil.example" },
  { host: "127.0.0.1/evil.example" },
  { host: "localhost\\.evil.example" },
  { host: "127.0.0.1:4402", origin: "https://evil.example" },
  { host: "127.0.0.1:4402", origin: "https://localhost.evil.example" },
  { host: "127.0.0.1:4402", origin: "null" },
  { host: "127.0.0.1:4402", origin: "file://" },
])("a foreign page is refused: %o", (headers) => {
  expect(foreign(headers, loopback)).toMatch(/^the (Host|Origin) header/);
});

test("the address that was asked for may be named, and no other one", () => {
  expect(foreign({ host: "192.168.1.7:4402" }, { host: "192.168.1.7" })).toBeUndefined();
  expect(foreign({ host: "192.168.1.8:4402" }, { host: "192.168.1.7" })).toBeDefined();
});

test("on every address, any IP address may be named, which DNS cannot rebind, and no name", () => {
  expect(foreign({ host: "192.168.1.7:4402" }, { host: "0.0.0.0" })).toBeUndefined();
  expect(foreign({ host: "[fd00::7]:4402" }, { host: "::" })).toBeUndefined();
  expect(foreign({ host: "evil.example:4402" }, { host: "0.0.0.0" })).toBeDefined();
});

test("a name that was allowed may be named, by programs and by pages that it served, and no other name", () => {
  const listening = { host: "0.0.0.0", allowHosts: ["facilitator", "pay.internal"] };
  expect(foreign({ host: "Facilitator:4402" }, listening)).toBeUndefined();
  expect(foreign({ host: "pay.internal", origin: "http://pay.internal:4402" }, listening)).toBeUndefined();
  expect(foreign({ host: "evil.example:4402" }, listening)).toBeDefined();
  expect(foreign({ host: "facilitator.evil.example" }, listening)).toBeDefined();
  expect(foreign({ host: "facilitator:4402", origin: "http://evil.example" }, listening)).toBeDefined();
});

test.each([
  ["", "The body is empty: send a JSON object, such as {}"],
  ["{", "The body is not JSON, or has a member __proto__ or constructor.prototype, which is refused"],
])("a control route that gets the body %j says what is wrong with it", async (payload, message) => {
  const app = fastify();
  onTestFinished(() => app.close());
  app.setErrorHandler((error, _request, reply) => reply.code(400).send(controlRefusal(error)));
  app.post("/harness/pay", () => ({}));
  const headers = { "content-type": "application/json" };
  const answer = await app.inject({ method: "POST", url: "/harness/pay", headers, payload });
  expect(answer.json()).toEqual({ status: 400, message });
});
