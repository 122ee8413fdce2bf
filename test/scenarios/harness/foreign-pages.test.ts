import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startMockServer } from "../../../src/fixtures/mock-server/index.ts";
import { connectHarness, createHarness, type Harness } from "../../../src/harness/index.ts";
import { leaseHarness, startHarnessPool } from "../../../src/harness/pool/index.ts";
import { runHere } from "../../support/run-here.ts";
import { makeDirectory, startCommand } from "../../support/serve/command.ts";

/* A web page must not act on what runs on the machine of its visitor. */

async function ask(
  url: string,
  method: "GET" | "POST",
  headers: Record<string, string>,
): Promise<{ status: number | undefined; body: string }> {
  const outgoing = request(url, { method, headers: { "content-type": "application/json", ...headers } });
  outgoing.end(method === "POST" ? "{}" : undefined);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: response.statusCode, body: await text(response) };
}

const foreign: [string, Record<string, string>][] = [
  ["a page of another site", { origin: "https://evil.example" }],
  ["a sandboxed page", { origin: "null" }],
  ["a page by DNS rebinding", { host: "evil.example:4402", origin: "http://evil.example:4402" }],
  ["a reader by DNS rebinding", { host: "evil.example:4402" }],
];

describe("a harness", () => {
  let harness: Harness<"base">;
  let origin: string;
  beforeAll(async () => {
    harness = await createHarness({ networks: ["base"] });
    origin = new URL(harness.facilitator.url).origin;
  });
  afterAll(() => harness.close());

  test.each(foreign)("is neither reset nor read by %s", async (_, headers) => {
    const { settle } = await harness.pay({ network: "base" });
    const block = await harness.networks.base.client.getBlockNumber();
    for (const path of ["reset", "faults/clear", "fund", "advance-time"]) {
      const { status, body } = await ask(`${origin}/harness/${path}`, "POST", headers);
      expect(status).toBe(403);
      const refusal: { error: string; hints: string[] } = JSON.parse(body);
      expect(refusal.error).toMatch(/^Refused: the (Host|Origin) header/);
      const isOrigin = refusal.error.includes("the Origin");
      expect(refusal.hints[0]).toMatch(isOrigin ? /^Only programs, and pages/ : /^Ask for it as/);
      expect(refusal.hints[0]?.match(/127\.0\.0\.1/g)).toHaveLength(1);
    }
    expect((await ask(`${origin}/harness`, "GET", headers)).status).toBe(403);
    for (const path of ["verify", "settle"]) {
      expect((await ask(`${harness.facilitator.url}/${path}`, "POST", headers)).status).toBe(403);
    }
    expect((await ask(`${harness.facilitator.url}/supported`, "GET", headers)).status).toBe(403);
    expect(settle.status).toBe(200);
    expect(await harness.networks.base.client.getBlockNumber()).toBeGreaterThanOrEqual(block);
  });

  test("is controlled by other processes, the command line and pages of this machine", async () => {
    const connected = await connectHarness(harness.facilitator.url, ["base"]);
    await connected.networks.base.fund(harness.organization.recipient, 5n);
    const local = await ask(`${origin}/harness/reset`, "POST", { origin: "http://localhost:3000" });
    expect(local.status).toBe(200);
    const { code, stderr } = await runHere(["reset", "--url", origin]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });
});

describe("a node", () => {
  const chainId = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] });
  const upgrade = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };
  const localPage = { origin: "http://localhost:3000" };
  const wallet = { origin: "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn" };
  let harness: Harness<"base">;
  let url: string;
  beforeAll(async () => {
    harness = await createHarness({ networks: ["base"] });
    url = harness.networks.base.rpcUrl;
  });
  afterAll(() => harness.close());

  async function call(to: string, headers: Record<string, string>, method = "POST") {
    const outgoing = request(to, { method, headers: { "content-type": "application/json", ...headers } });
    outgoing.end(method === "POST" ? chainId : undefined);
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    return { status: response.statusCode, headers: response.headers, body: await text(response) };
  }

  /** The status of the answer to the beginning of a WebSocket. */
  async function openSocket(headers: Record<string, string>) {
    const outgoing = request(url, { headers: { ...upgrade, ...headers } }).end();
    outgoing.on("upgrade", (_, socket) => socket.destroy()).on("error", () => {});
    const [response] = (await Promise.race([once(outgoing, "upgrade"), once(outgoing, "response")])) as [
      IncomingMessage,
    ];
    response.resume();
    return response.statusCode;
  }

  test.each(foreign)("answers nothing to %s", async (_, headers) => {
    // A form's or an image's request needs no permission.
    for (const type of ["application/json", "text/plain"]) {
      const { status, headers: answered, body } = await call(url, { ...headers, "content-type": type });
      expect([status, answered["access-control-allow-origin"]]).toEqual([403, undefined]);
      expect(JSON.parse(body).error).toMatch(/^Refused: the (Host|Origin) header/);
    }
    expect((await call(url, headers, "OPTIONS")).status).toBe(403);
    expect(await openSocket(headers)).toBe(403);
  });

  test("takes nothing of another site over a connection that began without its name", async () => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    const evil = `POST / HTTP/1.1\r\nhost: localhost\r\norigin: https://evil.example\r\ncontent-length: 0\r\n\r\n`;
    // An image, of which browsers do not say where it is shown.
    socket.write(`GET / HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    await once(socket, "data");
    socket.write(evil);
    const [answer] = (await once(socket, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 403 /);
    socket.destroy();
  });

  test.each([
    ["a page of this machine", localPage],
    ["a wallet in a browser", wallet],
  ])("is read by %s", async (_, headers) => {
    const asked = { ...headers, "access-control-request-headers": "content-type" };
    const { status, headers: allowed } = await call(url, asked, "OPTIONS");
    expect({ status, allowed }).toMatchObject({
      status: 204,
      allowed: {
        "access-control-allow-origin": headers.origin,
        "access-control-allow-headers": "content-type",
        vary: "origin",
      },
    });
    const answered = await call(url, headers);
    expect(JSON.parse(answered.body)).toMatchObject({ result: "0x2105" });
    expect(answered.headers["access-control-allow-origin"]).toBe(headers.origin);
    expect(await openSocket(headers)).toBe(101);
  });

  test("tells the subscriber of a WebSocket of new blocks", async () => {
    const socket = new WebSocket(url.replace("http", "ws"));
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    const next = () =>
      new Promise<unknown>((resolve) =>
        socket.addEventListener("message", ({ data }) => resolve(JSON.parse(data)), { once: true }),
      );
    const subscribed = next();
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_subscribe", params: ["newHeads"] }));
    const { result } = (await subscribed) as { result: string };
    const told = next();
    await harness.pay({ network: "base" });
    expect(await told).toMatchObject({
      method: "eth_subscription",
      params: { subscription: result, result: { number: expect.stringMatching(/^0x/) } },
    });
    socket.close();
  });

  test("is called by a name that was allowed, by programs and by its pages", async () => {
    await using named = await createHarness({ networks: ["base"], allowHosts: ["shop"] });
    const { rpcUrl } = named.networks.base;
    expect((await call(rpcUrl, { host: "shop:8545" })).status).toBe(200);
    expect((await call(rpcUrl, { origin: "http://shop:3000" })).status).toBe(200);
    expect((await call(rpcUrl, { host: "evil.example:8545" })).status).toBe(403);
  });
});

describe("a name that was allowed, such as a container's,", () => {
  const byName = { host: "facilitator:4402" };
  const byAnother = { host: "evil.example:4402" };

  test("controls a harness, and no other name does", async () => {
    await using harness = await createHarness({ networks: ["base"], allowHosts: ["facilitator"] });
    const url = `${new URL(harness.facilitator.url).origin}/harness/reset`;
    expect((await ask(url, "POST", byName)).status).toBe(200);
    expect((await ask(url, "POST", byAnother)).status).toBe(403);
    const supported = `${harness.facilitator.url}/supported`;
    expect((await ask(supported, "GET", byName)).status).toBe(200);
    expect((await ask(supported, "GET", byAnother)).status).toBe(403);
  });

  test("controls the mock of the command line", async () => {
    await using directory = await makeDirectory();
    const args = ["mock", "--port", "0", "--json", "--allow-host", "facilitator,other"];
    await using command = startCommand(args, {}, directory.path);
    const url = `${new URL(JSON.parse(await command.printed(/^{/)).facilitator.url).origin}/__reset`;
    expect((await ask(url, "POST", byName)).status).toBe(204);
    expect((await ask(url, "POST", byAnother)).status).toBe(403);
  });
});

test("harnesses of a pool are leased to the processes that know its secret, and to no page or other program", async () => {
  const pool = await startHarnessPool({ networks: ["base"], maxHarnesses: 1 });
  try {
    const { origin } = new URL(pool.url);
    for (const [, headers] of foreign) expect((await ask(pool.url, "GET", headers)).status).toBe(404);
    for (const url of [origin, `${origin}/${"0".repeat(64)}`, `${pool.url}/`, `${pool.url}?a`]) {
      expect(await ask(url, "GET", {})).toEqual({ status: 404, body: "" });
    }
    // The only one is still free.
    await using harness = await leaseHarness(["base"]);
    expect((await harness.pay({ network: "base" })).settle.body.success).toBe(true);
  } finally {
    delete process.env.X402_HARNESS_POOL;
    await pool.close();
  }
});

test.each(foreign)("a mock takes neither orders nor payments from %s", async (_, headers) => {
  await using mock = await startMockServer();
  const { origin } = new URL(mock.url);
  for (const path of ["__reset", "__scenario", "__advance-time"]) {
    expect((await ask(`${origin}/${path}`, "POST", headers)).status).toBe(403);
  }
  expect((await ask(`${origin}/__calls`, "GET", headers)).status).toBe(403);
  for (const path of ["verify", "settle"]) {
    expect((await ask(`${mock.url}/${path}`, "POST", headers)).status).toBe(403);
  }
  expect((await ask(`${mock.url}/supported`, "GET", headers)).status).toBe(403);
  await using open = await startMockServer({ corsOrigins: "*" });
  const isRebound = "host" in headers;
  expect((await ask(`${open.url}/supported`, "GET", headers)).status).toBe(isRebound ? 403 : 200);
});
