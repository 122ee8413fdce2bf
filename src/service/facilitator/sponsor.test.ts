import { expect, test } from "vitest";
import { createLocalSigner } from "../../chain/signing/local-signer.ts";
import type { Gift, Gifts } from "../../ledger/gifts.ts";
import type { Hex } from "../../protocol/hex.ts";
import { networks } from "../../protocol/networks.ts";
import { harnessAccounts } from "../../published/accounts.ts";
import { createSponsor } from "./sponsor.ts";

/* A gift that no block takes: it is sent again, and pays more, but is never another one. */

test("what is sent again is what was kept, and pays more after a while", async () => {
  const signer = createLocalSigner(harnessAccounts.sponsor.privateKey);
  const [asset, payer] = [`0x${"aa".repeat(20)}`, `0x${"bb".repeat(20)}`] as const;
  let time = 0;
  // Enough for the gift, and not for its gas.
  let coins = 1_000n;
  const errors: unknown[] = [];
  let kept: Gift | null = null;
  const steps: string[] = [];
  const gifts: Gifts = {
    find: async () => kept,
    givenOn: async () => 0n,
    async give(gift, _, sign) {
      kept = { ...gift, ...(await sign(3)), txNonce: 3, givenAt: time };
      steps.push(`keep ${kept.hash}`);
      return kept;
    },
    open: async () => (kept === null ? [] : [kept]),
    async replace(gift, by) {
      kept = { ...gift, ...by, givenAt: time };
      steps.push(`keep ${kept.hash}`);
    },
  };
  const chain = {
    network: { ...networks.base, blockTimeMs: 100, maxFeePerGas: 10n ** 12n },
    head: async () => ({ number: 1n, timestamp: 1n, baseFeePerGas: 10n ** 9n }),
    suggestedTip: async () => 10n ** 6n,
    nativeBalance: async () => coins,
    transactionCount: async () => 3,
    async broadcast(_raw: readonly Hex[], { hashes = [] }: { hashes?: readonly Hex[] } = {}) {
      steps.push(`send ${hashes.join(" ")}`);
    },
  };
  const counted: unknown[] = [];
  const sponsor = createSponsor({
    // The rest of a chain is not asked.
    chain: chain as unknown as Parameters<typeof createSponsor>[0]["chain"],
    ...{ signer, gifts, limits: { each: 1_000n, daily: 1_000n }, now: () => time },
    metrics: { gift: (...gift) => counted.push(gift) },
    log: { info() {}, error: (_: unknown, text: string) => errors.push(text) } as unknown as Parameters<
      typeof createSponsor
    >[0]["log"],
  });

  expect(await sponsor.wouldGive({ asset, payer }, 1_000n)).toBe(false);
  coins = 0n;
  expect(await sponsor.give({ asset, payer }, 1_000n)).toBe(false);
  expect(errors).toEqual(Array(2).fill("the sponsor has no coins left to give"));
  coins = 10n ** 18n;
  expect(await sponsor.give({ asset, payer }, 1_001n)).toBe(false);
  expect(steps).toEqual([]);
  expect(await sponsor.give({ asset, payer }, 1_000n)).toBe(true);
  time += 100;
  expect(await sponsor.give({ asset, payer }, 1_000n)).toBe(true);
  time += 1_000;
  expect(await sponsor.give({ asset, payer }, 1_000n)).toBe(true);
  const [first, second] = [...new Set(steps.map((step) => step.slice(5)))];
  expect(steps).toEqual([
    `keep ${first}`,
    `send ${first}`,
    `send ${first}`,
    `keep ${second}`,
    `send ${second}`,
  ]);
  expect(second).not.toBe(first);
  expect(counted).toEqual([["base", 1_000n]]);
});
