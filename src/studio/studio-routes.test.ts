import Fastify from "fastify";
import { expect, test, vi } from "vitest";
import { builtInNetworks, networks } from "../protocol/networks.ts";
import { createPaymentStore } from "./payment-store.ts";
import { serveStudio } from "./serve-studio.ts";

vi.mock("node:fs/promises", async (original) => ({
  ...(await original<typeof import("node:fs/promises")>()),
  readFile: () => Promise.reject(new Error("ENOENT")),
}));

test("in a checkout that was never built, the page itself says what to do", async () => {
  await using app = Fastify();
  const store = createPaymentStore("a service");
  const { address } = networks.base.usdc;
  serveStudio(app, { store, contracts: { mainnet: address, testnet: address }, networks: builtInNetworks });
  const answer = await app.inject({ url: "/studio" });
  expect(answer.statusCode).toBe(503);
  expect(answer.headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(answer.body).toContain("npm run build");
  expect((await app.inject({ url: "/studio/index.js" })).statusCode).toBe(404);
  store.close();
});
