import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { sendRequest } from "./send-request.ts";

const request = {
  method: "POST",
  path: "/v1/verify",
  headers: { "content-type": "application/json" },
  body: "{}",
};
const json = { "content-type": "application/json" };

/** The reading of a server's answer. */
async function sendTo(handle: RequestListener, timeoutMs?: number) {
  const server = createServer(handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  try {
    return await sendRequest(`http://127.0.0.1:${port}`, request, timeoutMs);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test.each<[string, RequestListener, object]>([
  [
    "JSON",
    (_, response) => response.writeHead(200, json).end('{"isValid":true}'),
    { kind: "json", body: { isValid: true } },
  ],
  ["JSON that is none", (_, response) => response.writeHead(200, json).end("{"), { kind: "text", text: "{" }],
  ["JSON without members", (_, response) => response.writeHead(200, json).end("null"), { kind: "text" }],
  ["a page", (_, response) => response.writeHead(502).end("<html>"), { kind: "text", status: 502 }],
  ["no answer", ({ socket }) => socket.resetAndDestroy(), { kind: "reset" }],
  ["a closed connection", ({ socket }) => socket.destroy(), { kind: "reset" }],
  [
    "half of an answer",
    ({ socket }, response) => {
      response.writeHead(200, json).write('{"isV', () => setTimeout(() => socket.resetAndDestroy(), 20));
    },
    { kind: "cut_off", status: 200, text: '{"isV' },
  ],
])("%s is recognized", async (_, handle, answer) => {
  expect(await sendTo(handle)).toMatchObject(answer);
});

test("waiting for an answer that does not come, or does not end, times out", async () => {
  await expect(sendTo(() => {}, 50)).rejects.toThrow("No answer from http://127.0.0.1");
  await expect(sendTo((_, response) => response.writeHead(200, json).write("{"), 50)).rejects.toThrow(
    "No answer",
  );
});
