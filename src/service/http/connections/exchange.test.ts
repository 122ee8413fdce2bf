import { Readable } from "node:stream";
import { brotliCompressSync, brotliDecompressSync } from "node:zlib";
import type { FastifyInstance } from "fastify";
import Fastify from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLogger } from "../../../observe/log/logger.ts";
import { alreadyDelivered } from "../../facilitator/settle-result.ts";
import { followDelivery, followExchange, holdLastByte } from "./exchange.ts";

let app: FastifyInstance;
let origin: string;
let fates: string[];
let isDue: boolean;
/** Changes the answer, as a hook of another plugin does. */
let change: (payload: unknown) => unknown;

beforeEach(async () => {
  app = Fastify();
  fates = [];
  isDue = true;
  change = (payload) => payload;
  app.decorateRequest("exchange");
  app.addHook("onRequest", async (request, reply) => {
    request.exchange = followExchange(request.raw, reply.raw);
  });
  app.addHook("onSend", async (_request, _reply, payload) => change(payload));
  app.get("/", async (request, reply) => {
    const note = (fate: string) => async () => void fates.push(fate);
    const delivery = {
      ...alreadyDelivered,
      isDue: async () => isDue,
      delivered: note("delivered"),
      lost: note("lost"),
    };
    followDelivery(reply, delivery, { log: createLogger("fatal"), count: () => {} });
    holdLastByte(reply, delivery, { noProxies: false });
    return { success: true, path: request.url };
  });
  origin = await app.listen({ host: "127.0.0.1", port: 0 });
});
afterEach(() => app.close());

const answer = '{"success":true,"path":"/"}';

test("an answer that another plugin compresses arrives whole", async () => {
  change = (payload) => brotliCompressSync(String(payload));
  const response = await fetch(origin);
  const body = Buffer.from(await response.arrayBuffer());
  expect(brotliDecompressSync(body).toString()).toBe(answer);
  await expect.poll(() => fates).toEqual(["delivered"]);
});

test("a success that is no longer due when it is complete breaks off, and is lost", async () => {
  isDue = false;
  await expect(fetch(origin).then((response) => response.text())).rejects.toThrow();
  await expect.poll(() => fates).toEqual(["lost"]);
});

test("an error in the place of the answer delivers nothing", async () => {
  change = (payload) => {
    change = (error) => error;
    throw new Error(`a plugin fails over ${payload}`);
  };
  const response = await fetch(origin);
  expect(response.status).toBe(500);
  await expect.poll(() => fates).toEqual(["lost"]);
});

test("an answer that another plugin makes a stream of arrives whole", async () => {
  change = (payload) => Readable.from([String(payload)]);
  expect(await (await fetch(origin)).text()).toBe(answer);
  await expect.poll(() => fates).toEqual(["delivered"]);
});
