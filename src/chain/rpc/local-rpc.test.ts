import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLocalRpc } from "./local-rpc.ts";

let connections = 0;
let open = 0;
let mostOpen = 0;
const node = createServer(async (request, response) => {
  const calls: { id: number; method: string }[] = JSON.parse(await text(request));
  response.end(JSON.stringify(calls.map(({ id, method }) => ({ jsonrpc: "2.0", id, result: method }))));
});
node.on("connection", (socket) => {
  connections++;
  mostOpen = Math.max(mostOpen, ++open);
  socket.on("close", () => open--);
});
beforeAll(() => once(node.listen(0, "127.0.0.1"), "listening"));
afterAll(() => {
  node.closeAllConnections();
  node.close();
});

test("clients of one node that are made for one call each share a connection", async () => {
  const { port } = node.address() as AddressInfo;
  for (let count = 0; count < 5; count++) {
    expect(await createLocalRpc(`http://127.0.0.1:${port}`).request("eth_chainId")).toBe("eth_chainId");
  }
  expect(connections).toBe(1);
});

test("thousands of calls at once are all answered, over a bounded number of connections", async () => {
  const { port } = node.address() as AddressInfo;
  const rpc = createLocalRpc(`http://127.0.0.1:${port}`);
  const answers = await Promise.all(Array.from({ length: 3_000 }, () => rpc.request("eth_chainId")));
  expect(new Set(answers)).toEqual(new Set(["eth_chainId"]));
  expect(mostOpen).toBeLessThanOrEqual(256);
});
