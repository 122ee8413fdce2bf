import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { platform } from "node:process";
import { setImmediate } from "node:timers/promises";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { listen } from "./listen.ts";
import { connections } from "./open-connections.ts";

let app: FastifyInstance;
let clients: Socket[];
let arrived: number;
let done: PromiseWithResolvers<string>;
beforeEach(async () => {
  clients = [];
  arrived = 0;
  done = Promise.withResolvers();
  app = Fastify({ keepAliveTimeout: 60_000 });
  await app.register(connections, { limits: undefined, timeouts: { stalledMs: 1_000, checkMs: 1_000 } });
  app.get("/slow", () => {
    arrived++;
    return done.promise;
  });
});
afterEach(async () => {
  for (const client of clients) client.destroy();
  await app.close();
});

const loopback = { host: "127.0.0.1", port: 0 };

async function connectMany(origin: string, count: number): Promise<Socket[]> {
  const port = Number(new URL(origin).port);
  clients = Array.from({ length: count }, () => connect(port, "127.0.0.1"));
  await Promise.all(clients.map((client) => once(client, "connect")));
  return clients;
}

test("a taken port is refused, even when a server of this kind has taken it", async () => {
  const origin = await listen(app, loopback);
  const other = Fastify();
  const port = Number(new URL(origin).port);
  await expect(listen(other, { ...loopback, port })).rejects.toMatchObject({ code: "EADDRINUSE" });
  await other.close();
});

describe.skipIf(platform !== "linux")("where sockets can share a port", () => {
  test("simultaneous callers are accepted several per turn of the event loop", async () => {
    const origin = await listen(app, loopback);
    const turns: number[] = [];
    let turn = 0;
    app.server.on("connection", () => turns.push(turn));
    const connecting = connectMany(origin, 200);
    while (turns.length < 200) {
      await setImmediate();
      turn++;
      // A busy turn, in which the system goes on taking connections.
      for (const until = performance.now() + 2; performance.now() < until; );
    }
    await connecting;
    expect(new Set(turns).size).toBeLessThan(100);
  });

  test("closing waits for all requests, and accepts no more connections", async () => {
    const origin = await listen(app, loopback);
    const opened = await connectMany(origin, 40);
    const answers = opened.map(async (client) => {
      client.write("GET /slow HTTP/1.1\r\nhost: x\r\n\r\n");
      let text = "";
      for await (const chunk of client) text += chunk;
      return text;
    });
    await expect.poll(() => arrived).toBe(40);
    const closed = app.close();
    await expect.poll(() => app.server.listening).toBe(false);
    done.resolve("done");
    await closed;
    for (const answer of await Promise.all(answers)) expect(answer).toContain("done");
    await expect(connectMany(origin, 1)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });
});
