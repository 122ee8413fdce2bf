import { expect, test } from "vitest";
import { createPaymentReader } from "../../../src/cli/kit/read-payments.ts";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { requestJson } from "../../../src/util/http-client.ts";

/* `seed`: the same calls give the same chains, to the hash of each block. */

type Seeded = Harness<"base" | "polygon">;
const names = ["base", "polygon"] as const;

const startSeeded = (seed: number) => createHarness({ networks: names, seed });

/** Does a bit of everything. */
async function play(harness: Seeded): Promise<void> {
  const { base, polygon } = harness.networks;
  await harness.pay({ network: "base" });
  await harness.pay({ network: "polygon", payer: "smartWallet", x402Version: 2 });
  await harness.pay({ network: "base", payer: "empty" });
  await harness.pay({ network: "base", payer: "fickle" });
  await base.fund(harness.organization.recipient, 5n);
  await polygon.advanceTime(3_600);
  // Several at a time: they take turns on each chain.
  await Promise.all([
    ...[1n, 2n, 3n, 4n].map((amount) => harness.pay({ network: "base", amount })),
    ...[1n, 2n, 3n].map((amount) => harness.pay({ network: "polygon", amount })),
    base.fund(harness.organization.recipient, 6n),
    polygon.mine(3),
  ]);
  await harness.pay({ network: "polygon", payer: harnessAccounts.admin.privateKey });
}

/** The hashes of all blocks and their transactions, with their times. */
async function history({ networks }: Seeded): Promise<unknown> {
  const blocksOf = async ({ client }: Seeded["networks"]["base" | "polygon"]) => {
    const height = Number(await client.getBlockNumber({ cacheTime: 0 }));
    const numbers = Array.from({ length: height + 1 }, (_, number) => BigInt(number));
    return Promise.all(
      numbers.map(async (blockNumber) => {
        const { hash, timestamp, transactions } = await client.getBlock({ blockNumber });
        return { hash, timestamp, transactions };
      }),
    );
  };
  return { base: await blocksOf(networks.base), polygon: await blocksOf(networks.polygon) };
}

test("two runs with the same seed, and a reset, give identical block and transaction hashes", async () => {
  await using one = await startSeeded(1);
  const start = await history(one);
  await play(one);
  const played = await history(one);

  await one.reset();
  expect(await history(one)).toEqual(start);
  await play(one);
  expect(await history(one)).toEqual(played);

  await using other = await startSeeded(1);
  await play(other);
  expect(await history(other)).toEqual(played);
});

test("another seed gives other transactions", async () => {
  await using one = await startSeeded(1);
  await using other = await startSeeded(2);
  const [first, second] = await Promise.all([one.pay({ network: "base" }), other.pay({ network: "base" })]);
  expect(first.settle.body.success && second.settle.body.success).toBe(true);
  expect(first.receipt?.transactionHash).not.toBe(second.receipt?.transactionHash);
});

test("chain time begins in 2026, moves with blocks alone, and the service is ready whatever it is", async () => {
  await using harness = await startSeeded(1);
  const { base } = harness.networks;
  const start = await base.now();
  expect(new Date(Number(start) * 1_000).toISOString()).toMatch(/^2026-01-01T00:00:0/);
  await harness.pay({ network: "base" });
  expect(await base.now()).toBe(start + 1n);
  expect(await base.advanceTime(100)).toBe(start + 101n);
  const { status } = await requestJson(harness.facilitator.url.replace("/v1", "/readyz"));
  expect(status).toBe(200);
});

test("a refused payment is not called expired by this machine's clock, which the chains do not go by", async () => {
  await using harness = await createHarness({ networks: ["base"], seed: 1, studio: true });
  await harness.pay({ network: "base", payer: "empty" });
  await harness.pay({ network: "base", authorization: { to: harnessAccounts.admin.address } });
  const reader = createPaymentReader(new URL(harness.facilitator.url).origin);
  const payments = await Promise.all((await reader.list(2)).map(({ id }) => reader.find(id)));
  const mistakes = payments.map((payment) => payment?.explanations.map(({ mistake }) => mistake));
  expect(mistakes).toEqual([["signed-for-another-recipient"], ["insufficient_funds"]]);
});
