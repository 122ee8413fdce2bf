import { expect, test } from "vitest";
import { createLocalSigner } from "../../chain/signing/local-signer.ts";
import type { Gift, Gifts } from "../../ledger/gifts.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { networks } from "../../protocol/networks.ts";
import { createSponsor, type GiftAccount } from "./sponsor.ts";

/* Whether a gift is made, and one that no block takes: it is sent again, and pays more, but is never another one. */

type Options = Parameters<typeof createSponsor>[0];

const [asset, payer] = [`0x${"aa".repeat(20)}`, `0x${"bb".repeat(20)}`] as const;
const value = 1_000n;
const dataFee = 777n;
const gasCost = 21_000n * (2n * 10n ** 9n + 10n ** 6n);
const cost = value + gasCost + dataFee;

/** A sponsor with just enough coins for one gift, in front of a ledger and a chain that keep what is done. */
function createScene() {
  const state = { time: 0, coins: cost, given: 0n };
  const steps: string[] = [];
  const counted: unknown[] = [];
  const errors: unknown[] = [];
  const asked: bigint[] = [];
  const charged: bigint[] = [];
  const kept = new Map<Address, Gift>();

  function keep(gift: Gift, charge: bigint): Gift {
    kept.set(gift.payer, gift);
    charged.push(charge);
    steps.push(`keep ${gift.hash}`);
    return gift;
  }
  const gifts: Gifts = {
    find: async ({ payer }) => kept.get(payer) ?? null,
    givenOn: async () => ({ total: state.given, own: 0n }),
    async give(gift, { organizationId, cost }, { mined }, sign) {
      expect(mined).toBe(3);
      const txNonce = mined + kept.size;
      const made = { ...gift, ...(await sign(txNonce)), txNonce, givenAt: state.time, organizationId };
      return keep(made, cost);
    },
    open: async () => [...kept.values()],
    async replace(gift, by, { more }) {
      keep({ ...gift, ...by, givenAt: state.time }, more);
      return true;
    },
  };
  const chain = {
    network: { ...networks.base, blockTimeMs: 100, maxFeePerGas: 10n ** 12n },
    head: async () => ({ number: 1n, timestamp: 1n, baseFeePerGas: 10n ** 9n }),
    suggestedTip: async () => 10n ** 6n,
    highestFees: async () => ({ baseFeePerGas: 10n ** 9n, tip: 10n ** 6n }),
    gasMoney: async () => ({ balances: [state.coins], settleCost: dataFee }),
    // The first one says what would have the sponsor sign what no block can take.
    endpoints: () => [
      { endpoint: "1", transactionCount: async () => 1_000_000 },
      { endpoint: "2", transactionCount: async () => 3 },
    ],
    async broadcast(_raw: readonly Hex[], { hashes = [] }: { hashes?: readonly Hex[] } = {}) {
      steps.push(`send ${hashes.join(" ")}`);
    },
  };
  const account: GiftAccount = {
    organizationId: "shop",
    within(wei, give) {
      asked.push(wei);
      return give();
    },
  };
  const log = { info() {}, error: (_: unknown, text: string) => errors.push(text) };
  const options: Options = {
    // The rest of a chain is not asked.
    chain: chain as unknown as Options["chain"],
    signer: createLocalSigner(harnessAccounts.sponsor.privateKey),
    ...{ gifts, limits: { each: value, daily: 2n * value }, now: () => state.time },
    metrics: {
      gift: (...gift) => counted.push(gift),
      giftRefused: (_, reason) => counted.push(reason),
    },
    log: log as unknown as Options["log"],
  };
  const sponsor = createSponsor(options);
  return {
    ...{ state, steps, counted, errors, asked, charged, options, sponsor },
    give: (wei = value, by = sponsor, to: Address = payer) =>
      by.give({ asset, payer: to }, { wei, forData: 0n, gas: 70_000n }, account),
    wouldGive: (wei = value) =>
      sponsor.wouldGive({ asset, payer }, { wei, forData: 0n, gas: 70_000n }, "shop"),
  };
}

test.each([
  { name: "the sponsor has none", coins: 0n, reason: "coins" },
  { name: "the sponsor has enough for it, and not for its gas", coins: value, reason: "coins" },
  { name: "the sponsor has one wei too few for its data", coins: cost - 1n, reason: "coins" },
  { name: "it is above what is given at once", wei: value + 1n, coins: 2n * cost, reason: "payment" },
  { name: "it is above what is left of the day", given: value + 1n, reason: "day" },
  { name: "others are left less than it", given: 1n, reason: "organization" },
])("nothing is given, nor said to be, where $name", async ({ wei, coins = cost, given = 0n, reason }) => {
  const { state, steps, counted, errors, asked, give, wouldGive } = createScene();
  Object.assign(state, { coins, given });
  expect([await wouldGive(wei), await give(wei)]).toEqual([false, false]);
  expect([steps, asked]).toEqual([[], []]);
  expect(counted).toEqual([reason, reason]);
  // Strangers must not fill the log.
  const text = "the sponsor has no coins left to give";
  expect(errors).toEqual(reason === "coins" ? [text, text] : []);
});

test("what is given in a day is told with its limit", async () => {
  const { state, sponsor } = createScene();
  state.given = 1_001n;
  expect(await sponsor.today()).toEqual({ given: 1_001n, limit: 2n * value });
});

test("what is sent again is what was kept, and pays more after a while", async () => {
  const { state, steps, counted, asked, charged, options, give, wouldGive } = createScene();
  expect(await wouldGive()).toBe(true);
  expect([steps, asked]).toEqual([[], []]);
  expect(await give()).toBe(true);
  state.time += 100;
  expect(await give()).toBe(true);
  expect(await wouldGive()).toBe(true);
  state.time += 1_000;
  expect(await give()).toBe(true);
  const [first, second] = [...new Set(steps.map((step) => step.slice(5)))];
  expect(steps).toEqual([
    `keep ${first}`,
    `send ${first}`,
    `send ${first}`,
    `keep ${second}`,
    `send ${second}`,
  ]);
  expect(second).not.toBe(first);
  expect(counted).toEqual([["base", value]]);
  // The budget is asked once, and charged once more for what the second transaction offers above the first.
  expect(asked).toEqual([cost]);
  expect(charged).toEqual([cost, gasCost / 8n]);

  // With another key it is sent as it was kept, since only the one that gave it can offer more.
  state.time += 1_000;
  const signer = createLocalSigner(harnessAccounts.recoverer.privateKey);
  expect(await give(value, createSponsor({ ...options, signer }))).toBe(true);
  expect(steps.slice(5)).toEqual([`send ${second}`]);
});

test("many payments that wait have each gift sent once in a block time, in the order of their txNonces", async () => {
  const { state, steps, give } = createScene();
  state.coins = 3n * cost;
  const payers = [1, 2, 3].map((number): Address => `0x${`${number}`.repeat(40)}`);
  const giveAll = async () => {
    for (const payer of payers) expect(await give(value, undefined, payer)).toBe(true);
  };
  await giveAll();
  const hashes = steps.flatMap((step) => (step.startsWith("keep ") ? [step.slice(5)] : []));
  const sent = () => steps.splice(0).filter((step) => step.startsWith("send "));
  expect(sent()).toEqual(hashes.map((hash) => `send ${hash}`));
  state.time += 99;
  await giveAll();
  expect(sent()).toEqual([]);
  state.time += 1;
  await giveAll();
  expect(sent()).toEqual([`send ${hashes.join(" ")}`]);
});
