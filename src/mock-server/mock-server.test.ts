import { once } from "node:events";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { openRawConnection } from "../../test/support/http/raw-connection.ts";
import { findScenario, type ScenarioName, scenarios } from "../fixtures/cases/scenarios.ts";
import type { FixtureRequest } from "../fixtures/engine/answer.ts";
import { testKeys } from "../published/test-keys.ts";
import { createPaymentStore } from "../studio/payment-store.ts";
import { type MockServer, startMockServer } from "./index.ts";
import { createMockApp } from "./mock-app.ts";
import { createMockEngine } from "./mock-engine.ts";
import { createSessions, mostSessions } from "./sessions.ts";

let mock: MockServer;
beforeAll(async () => {
  mock = await startMockServer();
});
afterEach(() => mock.reset());
afterAll(() => mock?.close());

const rowSchema = z.object({
  name: z.string(),
  means: z.string(),
  request: z.object({
    method: z.string(),
    path: z.string(),
    headers: z.record(z.string(), z.string()),
    body: z.string(),
  }),
});

async function requestOf(name: ScenarioName): Promise<FixtureRequest> {
  return (await findScenario(name).plan(mock.environment)).request;
}

function send({ method, path, headers, body }: FixtureRequest, to = mock): Promise<Response> {
  return fetch(to.url.replace("/v1", path), { method, headers, body: body ?? null });
}

function control(path: string, body?: unknown, to = mock): Promise<Response> {
  const url = to.url.replace("/v1", path);
  // As curl announces it.
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  return body === undefined
    ? fetch(url)
    : fetch(url, { method: "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) });
}

/** Everything that arrives on a connection of its own, and the error that ended it, if one did. */
async function raw({ method, path, headers, body = "" }: FixtureRequest) {
  const { hostname, port } = new URL(mock.url);
  const socket = connect(Number(port), hostname);
  let received = "";
  let error: string | undefined;
  socket.setEncoding("utf8").on("data", (text) => {
    received += text;
  });
  socket.on("error", (cause) => {
    error = Reflect.get(cause, "code");
  });
  const lines = Object.entries({ host: hostname, ...headers, "content-length": Buffer.byteLength(body) });
  socket.write(
    `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`,
  );
  await new Promise((resolve) => socket.once("close", resolve));
  return { received, error };
}

test.each([
  ["noise", "NOISE\r\n\r\n", 400, "What arrived is not a well-formed HTTP/1.1 request"],
  ["no host", "GET /v1/supported HTTP/1.1\r\n\r\n", 400, "The request has no Host header"],
  [
    "a path longer than headers may be",
    `GET /${"a".repeat(20_000)} HTTP/1.1\r\nhost: a\r\n\r\n`,
    431,
    "The request line and the headers may have at most 16 KiB",
  ],
  [
    "more than is ever read",
    `POST /v1/settle HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\nauthorization: ${testKeys.local.apiKey}\r\ncontent-length: 999999999\r\n\r\n`,
    413,
    "The body may have at most 32 KiB",
  ],
])("%s is answered as the service answers it: %s", async (_name, bytes, status, detail) => {
  const { hostname, port } = new URL(mock.url);
  const socket = connect(Number(port), hostname);
  socket.write(bytes);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) {
    chunks.push(chunk);
    if (/\}$/.test(String(chunk))) break;
  }
  const received = Buffer.concat(chunks).toString();
  expect(received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(received).toContain("content-type: application/problem+json");
  expect(JSON.parse(received.slice(received.indexOf("{")))).toMatchObject({ status, detail });
});

test("a compressed body is refused with what to do", async () => {
  const request = await requestOf("settle.success");
  const headers = { ...request.headers, "content-encoding": "gzip" };
  const answer = await send({ ...request, headers, body: "\u001f\u0008" });
  expect(answer.status).toBe(415);
  expect(await answer.json()).toMatchObject({
    detail:
      "Send the body as plain JSON, without content-encoding: bodies that are compressed (gzip) are not read",
  });
});

test("answers as the facilitator does, and remembers what it was asked", async () => {
  const request = await requestOf("settle.success");
  const settled: unknown = await (await send(request)).json();
  expect(settled).toMatchObject({ success: true, network: "base" });
  expect(await (await send(request)).json()).toMatchObject({ errorReason: "invalid_transaction_state" });
  expect(await (await control("/__calls")).json()).toMatchObject([
    {
      operation: "settle",
      scenario: null,
      request: { method: "POST", path: "/v1/settle", body: request.body },
      payment: { x402Version: 1, network: "base", value: "10000" },
      answer: { kind: "json", status: 200, body: settled },
    },
    { answer: { body: { success: false } } },
  ]);
  expect(mock.calls).toHaveLength(2);
});

test("says whether the networks that a probe names are ready, and which there are when it names another", async () => {
  const probe = (query: string) => fetch(mock.url.replace("/v1", `/readyz${query}`));
  const ready = { ready: true, detail: "ok" };
  for (const [query, networks] of [
    ["?network=base", { base: ready }],
    ["?network=base&network=polygon", { base: ready, polygon: ready }],
  ] as const) {
    expect(await (await probe(query)).json()).toEqual({ status: "ready", networks });
  }
  expect(
    Object.keys(z.object({ networks: z.object({}).loose() }).parse(await (await probe("")).json()).networks),
  ).toHaveLength(5);
  for (const query of ["?network=bse", "?network=base&network=bse", "?network=", "?network=__proto__"]) {
    const answer = await probe(query);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({
      detail:
        "This network is not served here; served: base, base-sepolia, optimism, optimism-sepolia, polygon",
    });
  }
});

test("resets the connection before it reads the request, and settles nothing", async () => {
  const request = await requestOf("settle.success");
  await control("/__scenario", { name: "settle.connection.reset_before" });
  expect(await raw(request)).toEqual({ received: "", error: "ECONNRESET" });
  expect(await (await send(request)).json()).toMatchObject({ success: true });
});

test("resets the connection after settling, and answers the next request with the success", async () => {
  const request = await requestOf("settle.success");
  await control("/__scenario", { name: "settle.connection.answer_lost" });
  expect(await raw(request)).toEqual({ received: "", error: "ECONNRESET" });
  expect(await (await send(request)).json()).toMatchObject({ success: true });
  expect(await (await send(request)).json()).toMatchObject({ success: false });
});

test("cuts an answer off whose content-length is that of the whole", async () => {
  const request = await requestOf("settle.success");
  const whole = await (await send(request)).text();
  mock.reset();
  mock.scenario("settle.connection.cut_off");
  const { received, error } = await raw(request);
  const [head = "", body] = received.split("\r\n\r\n");
  expect(head).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(head).toMatch(new RegExp(`^content-length: ${Buffer.byteLength(whole)}\r?$`, "m"));
  expect({ body, error }).toEqual({ body: whole.slice(0, 16), error: undefined });
});

test("answers late, and closes without waiting for that", async () => {
  await using other = await startMockServer();
  await control("/__scenario", { name: "verify.success", delayMs: 60_000 }, other);
  const answer = send(await requestOf("verify.success"), other).then(
    () => "answered",
    () => "gone",
  );
  expect(await Promise.race([answer, sleep(200, "waiting")])).toBe("waiting");
  await other.close();
  expect(await answer).toBe("gone");
});

test("takes one scenario or several, for a number of times or always, where counted ones come first", async () => {
  const ordered = await control("/__scenario", [
    "settle.insufficient_funds",
    { name: "settle.unavailable.rpc_down", times: 2 },
    { name: "settle.too_many_requests", times: "always" },
    { name: "settle.invalid_payload", delayMs: 1 },
  ]);
  expect(await ordered.json()).toEqual({
    scenarios: [
      { name: "settle.insufficient_funds.empty", times: 1 },
      { name: "settle.unavailable.rpc_down", times: 2 },
      { name: "settle.too_many_requests.of_key", times: "always" },
      { name: expect.stringMatching(/^settle\.invalid_payload\./), times: 1, delayMs: 1 },
    ],
  });
  const request = await requestOf("settle.success");
  const statuses = [];
  for (let i = 0; i < 6; i++) statuses.push((await send(request)).status);
  expect(statuses).toEqual([200, 503, 503, 200, 429, 429]);
  expect((await control("/__reset", "")).status).toBe(204);
  expect(await (await send(request)).json()).toMatchObject({ success: true });
  expect(mock.calls).toHaveLength(1);
});

test("scenarios that it was started with always apply, and again after a reset", async () => {
  await using other = await startMockServer({ scenarios: ["verify.insufficient_funds"] });
  const request = await requestOf("verify.success");
  for (const then of [() => other.reset(), () => control("/__reset", "", other), () => {}]) {
    expect(await (await send(request, other)).json()).toMatchObject({
      invalidReason: "insufficient_funds",
    });
    await then();
  }
});

test("lets time pass", async () => {
  const request = await requestOf("verify.success");
  const before = Number(await mock.environment.now());
  const passed = z
    .object({ now: z.int() })
    .parse(await (await control("/__advance-time", { seconds: 3_600 })).json());
  expect(passed.now).toBeGreaterThanOrEqual(before + 3_600);
  expect(await (await send(request)).json()).toMatchObject({
    invalidReason: "invalid_exact_evm_payload_authorization_valid_before",
  });
});

test("shows the table, and each of its rows with the request that causes it", async () => {
  const table: unknown = await (await control("/__scenarios")).json();
  expect(table).toHaveLength(scenarios.length);
  const row = rowSchema.parse(await (await control("/__scenarios/verify.insufficient_funds")).json());
  expect(table).toContainEqual(expect.objectContaining({ name: row.name, means: row.means }));
  expect(await (await send(row.request)).json()).toMatchObject({ invalidReason: "insufficient_funds" });
});

test.each([
  { path: "/__scenario", body: "{", status: 400, error: /^The body is not JSON/ },
  { path: "/__scenario", body: [], status: 400, error: /^The body: must have .* at least 1$/ },
  { path: "/__scenario", body: { name: 402 }, status: 400, error: /^name: must be a string$/ },
  {
    path: "/__scenario",
    body: { nam: "settle.success" },
    status: 400,
    error: /^name: must be a string; The body: there is no "nam" here$/,
  },
  { path: "/__scenario", body: ["settle.success", {}], status: 400, error: /^1\.name: must be a string$/ },
  {
    path: "/__scenario",
    body: { name: "settle.success", times: "twice" },
    status: 400,
    error: /^times: must be a (whole )?number, or must be "always"$/,
  },
  {
    path: "/__scenario",
    body: { name: "settle.success", times: 0 },
    status: 400,
    error: /^times: must be at least 1/,
  },
  { path: "/__scenario", body: { name: "settle.success", time: 1 }, status: 400, error: /"time"/ },
  {
    path: "/__scenario",
    body: ["settle.insufficient_funds", "settle.insuficient_funds"],
    status: 400,
    error: /"settle.insuficient_funds"; the nearest are settle.insufficient_funds,/,
  },
  {
    path: "/__scenario",
    body: { name: "constructor" },
    status: 400,
    error: /^There is no scenario "constructor"/,
  },
  {
    path: "/__scenario",
    body: { name: `settle.${"x".repeat(1_000_000)}` },
    status: 400,
    error: /^name: is longer than the name of any scenario$/,
  },
  { path: "/__scenarios/nonsense", status: 400, error: /^There is no scenario "nonsense"/ },
  { path: "/__advance-time", body: { seconds: -1 }, status: 400, error: /^seconds: must be at least 0$/ },
  { path: "/__advance-time", body: { seconds: 1e15 }, status: 400, error: /seconds/ },
  {
    path: "/__scenaro",
    body: {},
    status: 404,
    error: /^There is no POST \/__scenaro; the nearest is POST \/__scenario$/,
  },
  { path: "/__nope", body: {}, status: 404, error: /^There is no POST \/__nope$/ },
])("refuses $path $body, and nothing changes", async ({ path, body, status, error }) => {
  const refused = await control(path, body);
  expect(refused.status).toBe(status);
  expect(await refused.json()).toMatchObject({ error: expect.stringMatching(error) });
  expect(await (await send(await requestOf("settle.success"))).json()).toMatchObject({ success: true });
  expect(mock.calls).toHaveLength(1);
});

test("pages of configured origins may call it, and read the headers that matter", async () => {
  const preflightOf = (url: string, origin: string) =>
    fetch(`${url}/settle`, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,idempotency-key",
      },
    });
  expect((await preflightOf(mock.url, "https://shop.example")).status).toBe(405);
  await using shop = await startMockServer({ corsOrigins: ["https://shop.example"] });
  const preflight = await preflightOf(shop.url, "https://shop.example");
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-headers")).toContain("idempotency-key");
  const other = await preflightOf(shop.url, "https://other.example");
  expect(other.headers.get("access-control-allow-origin")).toBeNull();
  await using all = await startMockServer({ corsOrigins: "*" });
  const { headers } = await send(await requestOf("settle.success"), all);
  expect(headers.get("access-control-allow-origin")).toBe("*");
  expect(headers.get("access-control-expose-headers")).toMatch(/location.*retry-after.*x-settlement-state/);
  expect(all.calls).toHaveLength(1);
});

test.each([
  { type: "nonsense", status: 415 },
  { type: undefined, status: 415 },
])("a body of type $type is refused as the service refuses it", async ({ type, status }) => {
  const { headers, ...request } = await requestOf("verify.success");
  const { "content-type": _, ...others } = headers;
  const bytes = new TextEncoder().encode(request.body);
  const answer = await fetch(mock.url.replace("/v1", request.path), {
    method: "POST",
    headers: { ...others, ...(type && { "content-type": type }) },
    body: bytes,
  });
  expect({ status: answer.status, type: answer.headers.get("content-type") }).toEqual({
    status,
    type: "application/problem+json; charset=utf-8",
  });
});

test("a port in use is named in the error", async () => {
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as { port: number };
  try {
    await expect(startMockServer({ port })).rejects.toThrow(`Port ${port} on 127.0.0.1 is in use`);
  } finally {
    other.close();
  }
});

test("connections without a request, and with a part of one, are closed as the service closes them", async () => {
  const app = await createMockApp(
    createSessions(() => createMockEngine({})),
    {
      host: "127.0.0.1",
      timeouts: { headersMs: 100, requestMs: 200, keepAliveMs: 60_000, stalledMs: 60_000, checkMs: 50 },
    },
    { store: createPaymentStore("mock"), serviceId: "mock", describe: () => ({}) },
  );
  try {
    const { port } = new URL(await app.listen({ host: "127.0.0.1", port: 0 }));
    const begun = "POST /v1/verify HTTP/1.1\r\nhost: localhost\r\n";
    const sent = ["", begun, `${begun}content-type: application/json\r\ncontent-length: 100\r\n\r\n{`];
    const answers = sent.map(async (text) => {
      const connection = await openRawConnection(Number(port));
      connection.send(text);
      return (await connection.closed()).split("\r\n")[0];
    });
    const timeout = "HTTP/1.1 408 Request Timeout";
    expect(await Promise.all(answers)).toEqual([timeout, timeout, timeout]);
  } finally {
    await app.close();
  }
});

const sessionSchema = z.object({ id: z.string(), facilitator: z.object({ url: z.string() }) });

test("sessions of tests that run at the same time share nothing", async () => {
  const worker = async (index: number) => {
    const made = await control("/__sessions", {});
    const { id, facilitator } = sessionSchema.parse(await made.json());
    const at = (path: string, init?: RequestInit) => fetch(facilitator.url.replace("/v1", path), init);
    const isRefused = index % 2 === 0;
    if (isRefused) await at("/__scenario", { method: "POST", body: '"settle.insufficient_funds"' });
    // The same payment everywhere: a shared ledger would settle it once.
    const { path, headers, body = null } = await requestOf("settle.success");
    const answer = await at(path, { method: "POST", headers, body });
    expect(await answer.json()).toMatchObject({ success: !isRefused });
    expect(answer.headers.get("location")).toMatch(new RegExp(`^/__sessions/${id}/v1/settlements/0x`));
    if (!isRefused) {
      const { authorization = "" } = headers;
      const location = new URL(`${answer.headers.get("location")}`, mock.url);
      expect((await fetch(location, { headers: { authorization } })).status).toBe(200);
    }
    expect(await (await at("/__calls")).json()).toHaveLength(isRefused ? 1 : 2);
    expect((await fetch(new URL(`/__sessions/${id}`, mock.url), { method: "DELETE" })).status).toBe(204);
    expect((await at("/__calls")).status).toBe(404);
  };
  await Promise.all(Array.from({ length: 40 }, (_, index) => worker(index)));
  expect(mock.calls).toEqual([]);
});

test("a session has a clock of its own, which stands still until it is moved", async () => {
  const made = await control("/__sessions", { clock: "2026-01-01T00:00:00Z" });
  const { facilitator } = sessionSchema.parse(await made.json());
  const clock = async () => (await fetch(facilitator.url.replace("/v1", "/__clock"))).json();
  expect(await clock()).toEqual({ now: 1_767_225_600 });
  await fetch(facilitator.url.replace("/v1", "/__advance-time"), { method: "POST", body: '{"seconds":60}' });
  expect(await clock()).toEqual({ now: 1_767_225_660 });
  await using session = mock.createSession({ clock: new Date("2026-01-01T00:00:00Z") });
  expect(session.description.control.clock).toBe(session.url.replace("/v1", "/__clock"));
  expect(session.environment.now()).toBe(1_767_225_600n);
});

test("a request to an unknown session is answered with what to do", async () => {
  const answer = await fetch(mock.url.replace("/v1", "/__sessions/none/v1/settle"), { method: "POST" });
  expect([answer.status, await answer.json()]).toEqual([
    404,
    expect.objectContaining({
      error: 'There is no session "none", or it was ended',
      hints: expect.arrayContaining([expect.stringContaining("at most 2000")]),
    }),
  ]);
});

test("sessions that nothing ends make room for new ones, the one unused for longest first", async () => {
  const sessions = createSessions(() => createMockEngine({}));
  const used = sessions.create();
  const left = sessions.create();
  for (let made = 2; made < mostSessions; made++) sessions.create();
  expect(sessions.find(used.id)).toBe(used.engine);
  sessions.create();
  expect([sessions.find(left.id), sessions.find(used.id), sessions.count]).toEqual([
    undefined,
    used.engine,
    mostSessions,
  ]);
});
