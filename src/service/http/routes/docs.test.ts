import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { builtInNetworks } from "../../../protocol/networks.ts";
import { openApiRoute } from "./docs.ts";

async function serve(describeBeside: () => Promise<{ example: { apiKey: string } }>) {
  const app = Fastify();
  onTestFinished(() => app.close());
  await app.register(openApiRoute, {
    knownNetworks: builtInNetworks,
    describeBeside: async () => ({ paths: {}, schemas: {}, ...(await describeBeside()) }),
  });
  return () => app.inject("/openapi.json");
}

test("who asks at the same time gets one document with one example; who asks later, a new one", async () => {
  let made = 0;
  const get = await serve(async () => ({ example: { apiKey: `key ${++made}` } }));
  const bodies = await Promise.all(Array.from({ length: 100 }, async () => (await get()).body));
  expect(made).toBe(1);
  expect(new Set(bodies).size).toBe(1);
  expect(JSON.parse(bodies[0] ?? "")).toMatchObject({ openapi: expect.stringMatching(/^3/) });
  await get();
  expect(made).toBe(2);
});

test("an example that could not be made is tried again", async () => {
  let isDown = true;
  const get = await serve(async () => {
    if (isDown) throw new Error("no node answers");
    return { example: { apiKey: "key" } };
  });
  expect((await get()).statusCode).toBe(500);
  isDown = false;
  expect((await get()).statusCode).toBe(200);
});
