import { once } from "node:events";
import { createServer } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { createKeepAlivePost, readRetryAfter, sendHttp } from "./http-client.ts";
import { closeAtOnce, listenOnLoopback } from "./node-http.ts";

const now = Date.UTC(2026, 0, 2, 3, 4, 5);

test.each<[string, number]>([
  ["0", 0],
  ["1", 1_000],
  [" 120 ", 120_000],
  ["31536000", 31_536_000_000],
  ["Fri, 02 Jan 2026 03:04:15 GMT", 10_000],
  ["Friday, 02-Jan-26 03:04:15 GMT", 10_000],
  ["Fri Jan  2 03:04:15 2026 GMT", 10_000],
  ["Fri, 02 Jan 2026 03:04:00 GMT", 0],
])("%j is a time to wait", (header, ms) => {
  expect(readRetryAfter(header, now)).toBe(ms);
});

test.each([
  undefined,
  "",
  "soon",
  "-1",
  "1.5",
  "0x10",
  "1e3",
  "9999999999",
  "5 minutes",
  "2026-01-02",
  "NaN",
])("%j is none", (header) => {
  expect(readRetryAfter(header, now)).toBeUndefined();
});

test("an error answer that never ends is given up, and its connection with it", async () => {
  const closed: Promise<unknown>[] = [];
  const server = createServer((_, response) => {
    response.writeHead(500).write("x");
    const more = setInterval(() => response.write("x".repeat(100_000)), 10);
    response.once("close", () => clearInterval(more));
    closed.push(once(response, "close"));
  });
  const port = await listenOnLoopback(server);
  onTestFinished(() => closeAtOnce(server));
  const post = createKeepAlivePost(new URL(`http://127.0.0.1:${port}`), {
    timeoutMs: 5_000,
    maxResponseBytes: 1_000_000,
  });
  onTestFinished(post.close);
  await expect(post("{}")).rejects.toThrow("HTTP 500");
  expect(closed).toHaveLength(1);
  await Promise.all(closed);
});

test.for([
  ["GET", 30_000],
  ["POST", 120_000],
] as const)("a %s to a server that never answers is given up after %i ms", async ([method, timeoutMs]) => {
  const server = createServer(() => {});
  const port = await listenOnLoopback(server);
  onTestFinished(() => closeAtOnce(server));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let failure: unknown;
  const sent = sendHttp(`http://127.0.0.1:${port}/`, { method }).catch((error: unknown) => {
    failure = error;
  });
  vi.advanceTimersByTime(timeoutMs - 1);
  await new Promise((resolve) => setImmediate(resolve));
  expect(failure).toBeUndefined();
  vi.advanceTimersByTime(1);
  await sent;
  expect(failure).toMatchObject({ kind: "timeout" });
});
