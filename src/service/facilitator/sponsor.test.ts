import { expect, test } from "vitest";
import { createLocalSigner } from "../../chain/signing/local-signer.ts";
import type { Gift, Gifts } from "../../ledger/gifts.ts";
import type { Hex } from "../../protocol/hex.ts";
import { networks } from "../../protocol/networks.ts";
import { harnessAccounts } from "../../published/accounts.ts";
import { createSponsor, type GiftAccount } from "./sponsor.ts";

/* A gift that no block takes: it is sent again, and pays more, but is never another one. */

test("what is sent again is what was kept, and pays more after a while", async () => {
  const signer = createLocalSigner(harnessAccounts.sponsor.privateKey);
  const [asset, payer] = [`0x${"aa".repeat(20)}`, `0x${"bb".repeat(20)}`] as const;
  let time = 0;
  // Enough for the gift, and not for its gas.
  let coins = 1_000n;
  const dataFee = 777n;
  const charged: bigint[] = [];
  let given = 0n;
  const errors: unknown[] = [];
  let kept: Gift | null = null;
  const steps: string[] = [];
  const gifts: Gifts = {
    find: async () => kept,
    givenOn: async () => ({ total: given, own: 0n }),
    async give(gift, { organizationId, cost }, { mined }, sign) {
      expect(mined).toBe(3);
      const made = { ...gift, ...(await sign(3)), txNonce: 3, givenAt: time, organizationId };
      kept = made;
      charged.push(cost);
      steps.push(`keep ${made.hash}`);
      return made;
    },
    open: async () => (kept === null ? [] : [kept]),
    async replace(gift, by, { more }) {
      kept = { ...gift, ...by, givenAt: time };
      charged.push(more);
      steps.push(`keep ${by.hash}`);
      return true;
    },
  };
  const chain = {
    network: { ...networks.base, blockTimeMs: 100, maxFeePerGas: 10n ** 12n },
    head: async () => ({ number: 1n, timestamp: 1n, baseFeePerGas: 10n ** 9n }),
    suggestedTip: async () => 10n ** 6n,
    gasMoney: async () => ({ balances: [coins], settleCost: dataFee }),
    transactionCount: async () => 3,
    // The first one says what would have the sponsor sign what no block can take.
    endpoints: () => [
      { endpoint: "1", transactionCount: async () => 1_000_000 },
      { endpoint: "2", transactionCount: async () => 3 },
    ],
    async broadcast(_raw: readonly Hex[], { hashes = [] }: { hashes?: readonly Hex[] } = {}) {
      steps.push(`send ${hashes.join(" ")}`);
    },
  };
  const counted: unknown[] = [];
  const asked: bigint[] = [];
  const account: GiftAccount = {
    organizationId: "shop",
    within(wei, give) {
      asked.push(wei);
      return give();
    },
  };
  const options: Parameters<typeof createSponsor>[0] = {
    // The rest of a chain is not asked.
    chain: chain as unknown as Parameters<typeof createSponsor>[0]["chain"],
    ...{ signer, gifts, limits: { each: 1_000n, daily: 2_000n }, now: () => time },
    metrics: {
      gift: (...gift) => counted.push(gift),
      giftRefused: (_, reason) => counted.push(reason),
    },
    log: { info() {}, error: (_: unknown, text: string) => errors.push(text) } as unknown as Parameters<
      typeof createSponsor
    >[0]["log"],
  };
  const sponsor = createSponsor(options);

  expect(await sponsor.wouldGive({ asset, payer }, 1_000n, "shop")).toBe(false);
  coins = 0n;
  expect(await sponsor.give({ asset, payer }, 1_000n, account)).toBe(false);
  expect(errors).toEqual(Array(2).fill("the sponsor has no coins left to give"));
  // Enough for the gift and its gas, and not for its data.
  const cost = 1_000n + 21_000n * (2n * 10n ** 9n + 10n ** 6n) + dataFee;
  coins = cost - 1n;
  expect(await sponsor.give({ asset, payer }, 1_000n, account)).toBe(false);
  coins = cost;
  expect(await sponsor.give({ asset, payer }, 1_001n, account)).toBe(false);
  given = 1_001n;
  expect(await sponsor.wouldGive({ asset, payer }, 1_000n, undefined)).toBe(false);
  expect(await sponsor.today()).toEqual({ given: 1_001n, limit: 2_000n });
  given = 0n;
  expect(await sponsor.wouldGive({ asset, payer }, 1_000n, "shop")).toBe(true);
  expect([steps, asked]).toEqual([[], []]);
  expect(await sponsor.give({ asset, payer }, 1_000n, account)).toBe(true);
  time += 100;
  expect(await sponsor.give({ asset, payer }, 1_000n, account)).toBe(true);
  time += 1_000;
  expect(await sponsor.give({ asset, payer }, 1_000n, account)).toBe(true);
  const [first, second] = [...new Set(steps.map((step) => step.slice(5)))];
  expect(steps).toEqual([
    `keep ${first}`,
    `send ${first}`,
    `send ${first}`,
    `keep ${second}`,
    `send ${second}`,
  ]);
  expect(second).not.toBe(first);
  expect(counted).toEqual(["coins", "coins", "coins", "payment", "day", ["base", 1_000n]]);
  // The budget is asked once, and charged once more for what the second transaction offers above the first.
  expect(asked).toEqual([cost]);
  expect(charged).toEqual([cost, (21_000n * (2n * 10n ** 9n + 10n ** 6n)) / 8n]);

  // With another key it is sent as it was kept, since only the one that gave it can offer more.
  time += 1_000;
  const another = createLocalSigner(harnessAccounts.recoverer.privateKey);
  expect(await createSponsor({ ...options, signer: another }).give({ asset, payer }, 1_000n, account)).toBe(
    true,
  );
  expect(steps.slice(5)).toEqual([`send ${second}`]);
});
