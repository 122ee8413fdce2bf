import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import Fastify from "fastify";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { memoryInUse } from "../../../test/support/memory-in-use.ts";
import { publish } from "../../../test/support/publish.ts";
import { answerHalfClosed } from "../../service/http/connections/listen.ts";
import { createTimeline } from "../timeline/timeline.ts";
import { paymentRoutes } from "./payment-routes.ts";

const serviceId = "the service";
const contract = "0x00000000000000000000000000000000000000F0";

afterEach(() => {
  vi.useRealTimers();
});

/** The streams of a service that has seen so many payments. */
async function serve(payments: number) {
  const timeline = createTimeline(serviceId);
  const app = Fastify();
  // As the service's server is: it answers those that send no more.
  answerHalfClosed(app.server);
  paymentRoutes(app, { timeline, context: { contracts: { mainnet: contract, testnet: contract } } });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const sockets = new Set<Socket>();
  app.server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    timeline.close();
    await app.close();
  });
  for (let index = 0; index < payments; index++) fail(index);
  const { port } = app.server.address() as AddressInfo;
  return { port, sockets };
}

function fail(index: number): void {
  publish("answer", {
    serviceId,
    requestId: `${index}`,
    operation: "verify",
    payment: undefined,
    settlementId: undefined,
    status: 400,
    result: { outcome: "refused", reason: "malformed", message: "x".repeat(8_000) },
    tookMs: 1,
  });
}

/** A reader of `/events`. */
async function open(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  socket.on("error", () => {});
  socket.write("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  return socket;
}

function countEvents(socket: Socket): () => number {
  let count = 0;
  let rest = "";
  socket.setEncoding("latin1").on("data", (text: string) => {
    const parts = `${rest}${text}`.split("event: payment");
    count += parts.length - 1;
    rest = (parts.at(-1) ?? "").slice(-14);
  });
  return () => count;
}

test("readers that never read are dropped, take little memory until then, and keep no other from reading", {
  timeout: 30_000,
}, async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const { port, sockets } = await serve(2_000);
  const paused = await Promise.all(Array.from({ length: 50 }, () => open(port)));
  for (const socket of paused) socket.pause();
  await expect.poll(() => sockets.size).toBe(50);
  // Changes go on meanwhile.
  for (let index = 2_000; index < 2_100; index++) fail(index);
  const reader = await open(port);
  const events = countEvents(reader);
  await expect.poll(events).toBeGreaterThanOrEqual(2_100);
  const unread = [...sockets].map((socket) => socket.writableLength);
  expect(Math.max(...unread)).toBeLessThan(600_000);
  expect(unread.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(51 * 400_000);

  // There is no request, and nothing changes.
  vi.advanceTimersByTime(15_000);
  vi.advanceTimersByTime(15_000);
  await expect.poll(() => sockets.size).toBe(1);
  expect(reader.destroyed).toBe(false);
  for (const socket of paused) socket.destroy();
  reader.destroy();
});

test("a reader that leaves is forgotten at once, and not when there is something to write to it", async () => {
  const { port, sockets } = await serve(0);
  const reader = await open(port);
  await once(reader, "data");
  reader.destroy();
  await expect.poll(() => sockets.size).toBe(0);
});

test("lists that are asked for many times at once and not read take little memory, and come whole to who reads", async () => {
  const { port, sockets } = await serve(1_000);
  const whole = await (await fetch(`http://127.0.0.1:${port}/payments?limit=10000`)).json();
  expect(whole).toMatchObject({ apiVersion: 1, payments: { length: 1_000 } });
  await expect.poll(() => sockets.size).toBeLessThanOrEqual(1);
  const paused = connect(port, "127.0.0.1");
  onTestFinished(() => void paused.destroy());
  await once(paused, "connect");
  paused.pause();
  const before = memoryInUse();
  // Of some 8 MB each.
  paused.write("GET /payments?limit=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(50));
  // Another is answered after them.
  const other = await fetch(`http://127.0.0.1:${port}/payments?limit=1`);
  expect(await other.json()).toMatchObject({ payments: { length: 1 } });
  const queued = [...sockets].map(({ writableLength }) => writableLength);
  expect(Math.max(...queued)).toBeLessThan(2_000_000);
  // Parts of each list wait; whole lists would be 400 MB.
  expect(memoryInUse() - before).toBeLessThan(200_000_000);
});

test.each([
  ["the newest change that it has seen", 1, undefined],
  ["a change that there was not", 7, "event: reset"],
])("a reader that comes back with %s is answered at once", async (_, version, begins) => {
  const { port } = await serve(1);
  const reader = await fetch(`http://127.0.0.1:${port}/events`);
  const known = reader.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!/^id: /m.test(text)) text += (await known?.read())?.value ?? "";
  await known?.cancel();
  const [epoch] = /(?<=^id: )[^.]+/m.exec(text) ?? [];
  // Its headers come, although nothing has happened since.
  const again = await fetch(`http://127.0.0.1:${port}/events`, {
    headers: { "last-event-id": `${epoch}.${version}` },
  });
  expect(again.status).toBe(200);
  if (begins === undefined) return;
  const first = await again.body?.getReader().read();
  expect(new TextDecoder().decode(first?.value)).toContain(begins);
});

async function firstLine(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (part) => {
    text += part;
  });
  await expect.poll(() => text).toContain("\r\n\r\n");
  return text.split("\r\n")[0] ?? "";
}

test("an address has 64 streams; what it asks for beyond is refused, until it closes one", async () => {
  const { port, sockets } = await serve(0);
  const first = await Promise.all(Array.from({ length: 64 }, () => open(port)));
  expect(new Set(await Promise.all(first.map(firstLine)))).toEqual(new Set(["HTTP/1.1 200 OK"]));
  const refused = await fetch(`http://127.0.0.1:${port}/events`);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
  expect(await refused.json()).toEqual({
    error:
      "64 streams to 127.0.0.1 are open, and one address gets no more: close streams that are not read any more, or follow one for all readers",
  });
  first[0]?.destroy();
  await expect.poll(() => sockets.size).toBeLessThan(65);
  expect(await firstLine(await open(port))).toBe("HTTP/1.1 200 OK");
});

test("streams that are asked for on one connection, one behind the other, are one stream", async () => {
  const { port, sockets } = await serve(0);
  const many = connect(port, "127.0.0.1");
  many.write("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(200));
  await once(many, "data");
  expect(await firstLine(await open(port))).toBe("HTTP/1.1 200 OK");
  many.destroy();
  await expect.poll(() => sockets.size).toBe(1);
});

test("a reader that reads nothing is dropped, however little waits for it", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const { port, sockets } = await serve(0);
  const paused = await open(port);
  paused.pause();
  await expect.poll(() => sockets.size).toBe(1);
  const [socket] = sockets;
  // Until the system takes no more.
  for (let index = 0; socket?.writableLength === 0 && index < 5_000; index += 10) {
    for (let one = 0; one < 10; one++) fail(index + one);
    await sleep(30);
  }
  expect(socket?.writableLength).toBeGreaterThan(0);
  expect(socket?.writableLength).toBeLessThan(262_144);
  vi.advanceTimersByTime(15_000);
  vi.advanceTimersByTime(15_000);
  await expect.poll(() => sockets.size).toBe(0);
});
