import { once } from "node:events";
import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { type StubApp, startStubApp } from "../../support/http/stub-app.ts";

/*
 * The page about the API and its script of 4 MB: sent small, kept by browsers, and no way to fill the memory.
 */

let app: StubApp;
const unread: Socket[] = [];
afterEach(async () => {
  for (const socket of unread.splice(0)) socket.destroy();
  await app.close();
});

type Answer = { status: number; headers: Record<string, unknown>; body: Buffer };

function get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  request(`${app.origin}${path}`, { headers, agent: false }, (response) => {
    const parts: Buffer[] = [];
    response.on("data", (part: Buffer) => parts.push(part));
    response.on("error", reject);
    response.on("end", () =>
      resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) }),
    );
  })
    .on("error", reject)
    .end();
  return promise;
}

/** Asks for the script and does not read the answer. */
async function askWithoutReading(): Promise<Socket> {
  const socket = connect({ port: app.port, host: "127.0.0.1" });
  unread.push(socket);
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.pause();
  socket.write("GET /docs/js/scalar.js HTTP/1.1\r\nhost: localhost\r\naccept-encoding: identity\r\n\r\n");
  return socket;
}

/** The URL of the script, as the page has it. */
async function scriptPath(): Promise<string> {
  const page = (await get("/docs/", { "accept-encoding": "identity" })).body.toString();
  const [, path = ""] = /src="(js\/scalar\.js[^"]*)"/.exec(page) ?? [];
  return `/docs/${path}`;
}

describe("the script of /docs", () => {
  test("is sent compressed where the caller takes that, and is the same everywhere", async () => {
    app = await startStubApp({ docs: true });
    const plain = await get("/docs/js/scalar.js", { "accept-encoding": "identity" });
    expect(plain.body.length).toBeGreaterThan(4_000_000);
    expect(plain.headers).toMatchObject({
      "content-length": String(plain.body.length),
      vary: "accept-encoding",
    });
    expect(plain.headers).not.toHaveProperty("content-encoding");
    const brotli = await get("/docs/js/scalar.js", { "accept-encoding": "gzip, deflate, br, zstd" });
    expect(brotli.headers["content-encoding"]).toBe("br");
    expect(brotli.body.length).toBeLessThan(1_200_000);
    expect(brotliDecompressSync(brotli.body).equals(plain.body)).toBe(true);
    const unasked = await get("/docs/js/scalar.js");
    expect(unasked.headers["content-encoding"]).toBeUndefined();
    expect(unasked.body.equals(plain.body)).toBe(true);
    const gzip = await get("/docs/js/scalar.js", { "accept-encoding": "gzip, br;q=0" });
    expect(gzip.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(gzip.body).equals(plain.body)).toBe(true);
  });

  test("is kept for ever under the URL that the page has, and asked for again under another", async () => {
    app = await startStubApp({ docs: true });
    expect((await get(await scriptPath())).headers["cache-control"]).toBe(
      "public, max-age=31536000, immutable",
    );
    for (const query of ["", "?v=1", "?v=1&v=2"]) {
      expect((await get(`/docs/js/scalar.js${query}`)).headers["cache-control"]).toBe("no-cache");
    }
  });

  test("is not sent again to a caller who has it", async () => {
    app = await startStubApp({ docs: true });
    const accepting = { "accept-encoding": "br" };
    const { etag } = (await get("/docs/js/scalar.js", accepting)).headers;
    const again = await get("/docs/js/scalar.js", { ...accepting, "if-none-match": String(etag) });
    expect([again.status, again.body.length]).toEqual([304, 0]);
    const plain = await get("/docs/js/scalar.js", {
      "accept-encoding": "identity",
      "if-none-match": String(etag),
    });
    expect(plain.status).toBe(200);
  });

  test("takes next to no time once it was asked for", async () => {
    app = await startStubApp({ docs: true });
    const accepting = { "accept-encoding": "br" };
    await get("/docs/js/scalar.js", accepting);
    const before = process.cpuUsage();
    for (let round = 0; round < 50; round++) await get("/docs/js/scalar.js", accepting);
    const { user, system } = process.cpuUsage(before);
    // The caller's share included. To compress it anew takes several hundred milliseconds.
    expect((user + system) / 50 / 1_000).toBeLessThan(60);
  });

  test("takes no memory to speak of when 300 callers ask for it and do not read, and probes are answered", async () => {
    app = await startStubApp({ docs: true });
    await get("/docs/js/scalar.js", { "accept-encoding": "identity" });
    const before = process.memoryUsage();
    await Promise.all(Array.from({ length: 300 }, askWithoutReading));
    expect((await get("/livez")).status).toBe(200);
    await sleep(500);
    expect((await get("/livez")).status).toBe(200);
    const after = process.memoryUsage();
    const grown = after.external + after.heapUsed - before.external - before.heapUsed;
    expect(grown / 1024 / 1024).toBeLessThan(100);
  });

  test("is given to a few callers at a time, and the others are told when to come again", async () => {
    app = await startStubApp({ docs: true });
    await get("/docs/js/scalar.js");
    await Promise.all(Array.from({ length: 40 }, askWithoutReading));
    await expect.poll(async () => (await get("/docs/js/scalar.js")).status).toBe(503);
    expect((await get("/v1/supported")).status).toBe(200);
    for (const socket of unread.splice(0)) socket.destroy();
    await expect.poll(async () => (await get("/docs/js/scalar.js")).status).toBe(200);
  });
});

test("a caller who does not read is cut off; one who reads slowly gets everything", async () => {
  app = await startStubApp({
    docs: true,
    timeouts: { headersMs: 5_000, requestMs: 5_000, keepAliveMs: 5_000, stalledMs: 1_000, checkMs: 100 },
  });
  const { body } = await get("/docs/js/scalar.js", { "accept-encoding": "identity" });
  const [stalled, slow] = [await askWithoutReading(), await askWithoutReading()];
  let received = 0;
  slow.on("data", (part: Buffer) => {
    received += part.length;
    slow.pause();
    setTimeout(() => slow.resume(), 20);
  });
  slow.resume();
  await expect.poll(() => received).toBeGreaterThan(body.length);
  // What the kernel held of the answer can still be read, and no more.
  let rest = 0;
  stalled.on("data", (part: Buffer) => {
    rest += part.length;
  });
  stalled.resume();
  await once(stalled, "close");
  expect(rest).toBeLessThan(body.length);
});

test("there is no page unless it was asked for; the document is there", async () => {
  app = await startStubApp();
  expect((await get("/docs/")).status).toBe(404);
  expect((await get("/docs/js/scalar.js")).status).toBe(404);
  expect((await get("/openapi.json")).status).toBe(200);
});
