import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { createLogger } from "../../../src/observe/log/logger.ts";
import { createMetrics } from "../../../src/observe/metrics/metrics.ts";
import { createInternalApp, createMetricsApp } from "../../../src/service/http/app.ts";
import { openRawConnection, postText } from "../../support/http/raw-connection.ts";
import { paymentBody, type StubApp, startStubApp } from "../../support/http/stub-app.ts";

/*
 * Connections that are open and carry nothing keep neither others out nor the service from ending.
 */

let app: StubApp | undefined;
const sockets: Socket[] = [];
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await app?.close();
  app = undefined;
});

const start = async (options: Parameters<typeof startStubApp>[0] = {}) => {
  app = await startStubApp(options);
  return app;
};

async function open(port: number, localAddress = "127.0.0.1"): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  sockets.push(socket);
  socket.on("error", () => {});
  await once(socket, "connect");
  return socket;
}

/** Asks on an open connection, and resolves with the status; undefined when the connection closes instead. */
async function ask(socket: Socket, path: string): Promise<number | undefined> {
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  socket.once("data", (bytes: Buffer) => resolve(Number(bytes.toString().slice(9, 12))));
  socket.once("close", () => resolve(undefined));
  if (socket.destroyed) resolve(undefined);
  socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
  return promise;
}

const stillOpen = (these: readonly Socket[]) =>
  these.filter(({ destroyed, readableEnded }) => !destroyed && !readableEnded);
const readAll = (these: readonly Socket[]) => {
  for (const socket of these) socket.resume();
};

describe("many connections that carry nothing", () => {
  test("from one address close each other, and readiness is answered to that address and to others", async () => {
    const { port } = await start({ connections: { max: 200, maxPerAddress: 100 } });
    const idle = await Promise.all(Array.from({ length: 500 }, () => open(port)));
    readAll(idle);
    expect(await ask(await open(port), "/readyz")).toBe(200);
    expect(await ask(await open(port, "127.0.0.2"), "/readyz")).toBe(200);
    await expect.poll(() => stillOpen(idle).length).toBeLessThanOrEqual(100);
  });

  test("and ask whether the service lives now and then are closed for new ones as well, longest idle first", async () => {
    const { port } = await start({ connections: { max: 5, maxPerAddress: 5 } });
    const asking: Socket[] = [];
    for (let index = 0; index < 5; index++) {
      const socket = await open(port);
      asking.push(socket);
      expect(await ask(socket, "/livez")).toBe(200);
    }
    // The first is now the one that was used last.
    const [first] = asking;
    expect(first && (await ask(first, "/livez"))).toBe(200);
    readAll(asking);
    expect(await ask(await open(port), "/readyz")).toBe(200);
    await expect.poll(() => stillOpen(asking).length).toBe(4);
    expect(stillOpen(asking)).not.toContain(asking[1]);
  });

  test("from one address make room for another address when all places are taken", async () => {
    const { port } = await start({ connections: { max: 20, maxPerAddress: 100 } });
    const few = await Promise.all(Array.from({ length: 5 }, () => open(port, "127.0.0.3")));
    const many = await Promise.all(Array.from({ length: 15 }, () => open(port)));
    readAll([...few, ...many]);
    for (let index = 0; index < 5; index++) {
      expect(await ask(await open(port, "127.0.0.2"), "/readyz")).toBe(200);
    }
    await expect.poll(() => stillOpen(many).length).toBe(10);
    expect(stillOpen(few)).toHaveLength(5);
  });

  test("and send no more are closed at once, those with a part of a request too", async () => {
    const { port } = await start();
    const idle = await openRawConnection(port);
    idle.halfClose();
    expect(await idle.closed()).toBe("");
    const partial = await openRawConnection(port);
    partial.send(postText("/v1/settle", paymentBody()).slice(0, -100));
    partial.halfClose();
    expect(await partial.closed()).toMatch(/^HTTP\/1.1 400 /);
    const used = await openRawConnection(port);
    used.send("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
    used.halfClose();
    expect(await used.closed()).toContain("HTTP/1.1 200 OK");
  });

  test("do not cut off a settle that waits", async () => {
    const { port, settle } = await start({ connections: { max: 10, maxPerAddress: 10 } });
    const connection = await openRawConnection(port);
    connection.send(postText("/v1/settle", paymentBody()));
    const waiting = await settle(0);
    readAll(await Promise.all(Array.from({ length: 50 }, () => open(port))));
    waiting.succeed();
    expect(await connection.until(/"success":true/)).toContain("200 OK");
    connection.end();
  });
});

describe("the service ends promptly", () => {
  // Nothing of what stands open would end by itself before the test is given up.
  const long = 250_000;
  const timeouts = { headersMs: long, requestMs: long, keepAliveMs: long, stalledMs: long, checkMs: 1_000 };

  test("though a connection was opened on which nothing ever came", async () => {
    const { port, close } = await start({ timeouts });
    readAll([await open(port)]);
    await close();
  });

  test("though a request has arrived in part, its headers or its body", async () => {
    const { port, close } = await start({ timeouts });
    const [headers, body] = [await open(port), await open(port)];
    headers.write("POST /v1/settle HTTP/1.1\r\nhost: localhost\r\n");
    body.write(postText("/v1/settle", paymentBody()).slice(0, -100));
    readAll([headers, body]);
    await sleep(100);
    await close();
  });

  test("though an answer is not being read", async () => {
    const { port, close } = await start({ docs: true, timeouts });
    const socket = await open(port);
    socket.pause();
    socket.write(
      "GET /docs/js/scalar.js HTTP/1.1\r\nhost: localhost\r\naccept-encoding: identity\r\n\r\n".repeat(5),
    );
    await sleep(1_000);
    await close();
  });

  test("on the port of the metrics too", async () => {
    const { register } = await createMetrics();
    const metrics = createMetricsApp(register, createLogger("silent"));
    await metrics.listen({ host: "127.0.0.1", port: 0 });
    const { port } = metrics.server.address() as AddressInfo;
    const [idle, used] = [await open(port), await open(port)];
    expect(await ask(used, "/metrics")).toBe(200);
    expect((await metrics.inject("/")).json()).toEqual({ error: "There is GET /metrics" });
    readAll([idle, used]);
    const from = performance.now();
    await metrics.close();
    expect(performance.now() - from).toBeLessThan(1_000);
  });
});

test("connections without a whole request are closed in time on the ports for operators", async () => {
  const timeouts = {
    headersMs: 100,
    requestMs: 100,
    keepAliveMs: 60_000,
    stalledMs: 60_000,
    checkMs: 50,
  };
  const internal = createInternalApp(createLogger("silent"), { max: 9, maxPerAddress: 9 }, timeouts);
  await internal.listen({ host: "127.0.0.1", port: 0 });
  const { port } = internal.server.address() as AddressInfo;
  const [idle, begun] = [await open(port), await open(port)];
  begun.write("GET / HTTP/1.1\r\n");
  readAll([idle, begun]);
  await expect.poll(() => stillOpen([idle, begun]).length).toBe(0);
  await internal.close();
});
