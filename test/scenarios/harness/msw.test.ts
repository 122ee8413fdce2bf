import { setupServer as setupServer3 } from "msw/node";
import { setupServer as setupServer2 } from "msw-2/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";

/* A harness beside msw, which is told to let nothing through that it has no handler for. */

let harness: Harness<"base">;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"] });
});
afterAll(() => harness.close());

test.each([
  {
    major: 2,
    listen() {
      const server = setupServer2();
      server.listen({ onUnhandledRequest: "error" });
      return server;
    },
  },
  {
    major: 3,
    listen() {
      const server = setupServer3();
      server.listen({ onUnhandledFrame: "error" });
      return server;
    },
  },
])("pays, funds and reads the chain beside msw $major", async ({ listen }) => {
  const server = listen();
  try {
    const { settle, receipt } = await harness.pay({ network: "base" });
    expect([settle.status, receipt?.status]).toEqual([200, "success"]);
    await harness.networks.base.fund(harness.organization.recipient, 1n);
    expect(await harness.networks.base.client.getBlockNumber()).toBeGreaterThan(0n);
  } finally {
    server.close();
  }
});
