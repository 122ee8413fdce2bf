import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import { createGifts } from "./create-gifts.ts";
import { createGasSpending } from "./gas-spending.ts";
import type { GiftCharge, Gifts } from "./gifts.ts";
import type { LedgerTables } from "./rows.ts";

/*
 * Gas money for payers: once for each payer and token, and so much on a day, however many instances give it. What it costs is
 * charged to the organization that it was given for, once.
 */

const chainId = 8453;
const sponsor: Address = `0x${"5e".repeat(20)}`;
const asset: Address = `0x${"aa".repeat(20)}`;
const payerOf = (number: number): Address => `0x${number.toString(16).padStart(40, "0")}`;
const signedWith = (txNonce: number) => ({
  raw: `0x02${txNonce.toString(16).padStart(4, "0")}` as Hex,
  hash: `0x${txNonce.toString(16).padStart(64, "0")}` as Hex,
  ...{ maxFeePerGas: 2n ** 65n, maxPriorityFeePerGas: 1n },
});
const day = 24 * 60 * 60 * 1000;

describe.each(backends)("on $name", (backend) => {
  const database = useTestDatabase(backend);
  let time = 100 * day;
  let gifts: Gifts;
  let spentOf: (organizationId: string) => Promise<{ withCode: bigint; plain: bigint }>;
  beforeEach(async () => {
    time = 100 * day;
    const db = (await database.open()).$extendTables<LedgerTables>();
    gifts = createGifts(db, () => time);
    const gasSpending = createGasSpending(db, () => time);
    spentOf = async (organizationId) => (await gasSpending(organizationId, "base")).spent;
  });
  const giftTo = (payer: number, value: bigint) => ({
    chainId,
    asset,
    payer: payerOf(payer),
    sponsor,
    value,
  });
  const charge: GiftCharge = { organizationId: "shop", network: "base", cost: 5_000_000_001n };
  const give = (
    payer: number,
    { value = 10n, dailyLimit = 1_000n, mined = 7, organizationId = "shop", cost = charge.cost } = {},
  ) =>
    gifts.give(
      giftTo(payer, value),
      { ...charge, organizationId, cost },
      { mined, dailyLimit },
      async (txNonce) => signedWith(txNonce),
    );
  const open = async (mined = 0) =>
    (await gifts.open({ chainId, address: sponsor }, mined)).map((gift) => gift.txNonce);

  test("a gift is kept with its transaction, and comes once for a payer and token", async () => {
    const given = await give(1);
    expect(given).toMatchObject({ txNonce: 7, value: 10n, ...signedWith(7) });
    expect(await gifts.find({ chainId, asset, payer: payerOf(1) })).toEqual(given);
    expect(await give(1)).toBe("given_before");
    expect(await give(2)).toMatchObject({ txNonce: 8 });
    expect(await gifts.find({ chainId: 10, asset, payer: payerOf(1) })).toBeNull();
    expect(await open(8)).toEqual([8]);
  });

  test("many at once: one for each payer, without a gap, and never above the limit of the day", async () => {
    const asked = [1, 1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9];
    const outcomes = await Promise.all(asked.map((payer) => give(payer, { dailyLimit: 100n })));
    expect(outcomes.filter((one) => typeof one === "object")).toHaveLength(5);
    expect(await gifts.givenOn({ chainId, address: sponsor }, time, "shop")).toEqual({
      total: 50n,
      own: 50n,
    });
    expect(await open()).toEqual([7, 8, 9, 10, 11]);
    // Six gwei each: rounded up.
    expect(await spentOf("shop")).toEqual({ withCode: 30_000_000_000n, plain: 0n });
    time += day;
    expect(await spentOf("shop")).toEqual({ withCode: 0n, plain: 0n });
    expect(await give(20, { dailyLimit: 100n })).toMatchObject({ txNonce: 12 });
  });

  test("no organization is given more than it leaves for the others", async () => {
    const exhaust = async (organizationId: string, from: number) => {
      for (let count = 0; ; count++) {
        const given = await give(from + count, { dailyLimit: 100n, organizationId });
        if (typeof given !== "object") return { count, given };
      }
    };
    expect(await exhaust("greedy", 100)).toEqual({ count: 5, given: "organization" });
    expect(await exhaust("greedy", 200)).toEqual({ count: 0, given: "organization" });
    expect(await exhaust("shop", 300)).toEqual({ count: 2, given: "organization" });
    expect(await exhaust("late", 400)).toEqual({ count: 1, given: "organization" });
    expect(await give(500, { value: 21n, dailyLimit: 100n, organizationId: "last" })).toBe("day");
    expect(await open()).toHaveLength(8);
  });

  test("one of 2^90 wei, and a limit of as much, count like smaller ones", async () => {
    const [value, cost] = [2n ** 90n, 1n];
    expect(await give(1, { value, cost, dailyLimit: 2n * value })).toMatchObject({ value });
    expect(await give(2, { value: 1n, cost, dailyLimit: 2n * value })).toBe("organization");
    expect(await give(2, { value: value + 1n, cost, dailyLimit: 2n * value })).toBe("day");
    // What costs more than the table of a day's spending can add is not given.
    await expect(
      give(3, { dailyLimit: 2n ** 256n, cost: 2n ** 93n, organizationId: "other" }),
    ).rejects.toThrow();
    expect(await open()).toEqual([7]);
  });

  test.each([1n, 999_999_999n, 10n ** 9n, 10n ** 9n + 1n, 123_456_789_012_345_678n])(
    "gifts of %i wei are added to the wei",
    async (value) => {
      for (const payer of [1, 2, 3]) await give(payer, { value, dailyLimit: 10n ** 30n });
      await give(4, { value: 5n, dailyLimit: 10n ** 30n, organizationId: "other" });
      const given = await gifts.givenOn({ chainId, address: sponsor }, time, "other");
      expect(given).toEqual({ total: 3n * value + 5n, own: 5n });
    },
  );

  test("one whose signature takes until after midnight counts in the day on which it was given, everywhere", async () => {
    time = 101 * day - 1;
    const given = await gifts.give(
      giftTo(1, 10n),
      charge,
      { mined: 7, dailyLimit: 100n },
      async (txNonce) => {
        time += 1_000;
        return signedWith(txNonce);
      },
    );
    expect(given).toMatchObject({ givenAt: 101 * day - 1 });
    const nothing = { withCode: 0n, plain: 0n };
    expect(await spentOf("shop")).toEqual(nothing);
    time = 101 * day - 1;
    expect(await spentOf("shop")).not.toEqual(nothing);
    expect(await gifts.givenOn({ chainId, address: sponsor }, time)).toMatchObject({ total: 10n });
  });

  test("what cannot be signed takes no txNonce, and costs nothing", async () => {
    const gift = giftTo(1, 1n);
    const sign = () => Promise.reject(new Error("no key"));
    await expect(gifts.give(gift, charge, { mined: 7, dailyLimit: 9n }, sign)).rejects.toThrow("no key");
    expect(await gifts.find(gift)).toBeNull();
    expect(await spentOf("shop")).toEqual({ withCode: 0n, plain: 0n });
    expect(await give(1)).toMatchObject({ txNonce: 7 });
  });

  test("one that pays more takes the place of its transaction alone", async () => {
    const given = await give(1);
    if (typeof given !== "object") throw new Error("nothing was given");
    time += 1_000;
    const more = { ...signedWith(99), maxPriorityFeePerGas: 2n };
    const raise = { network: "base", more: 2_000_000_000n } as const;
    // Two that have read the same one: the second changes nothing.
    const done = await Promise.all([more, more].map((by) => gifts.replace(given, by, raise)));
    expect(done.sort()).toEqual([false, true]);
    expect(await gifts.replace(given, signedWith(98), raise)).toBe(false);
    expect(await gifts.find(given)).toEqual({ ...given, ...more, givenAt: time });
    expect(await spentOf("shop")).toEqual({ withCode: 9_000_000_000n, plain: 0n });
  });

  test("one of a version that kept no organization is charged to nobody when it pays more", async () => {
    const given = await give(1);
    if (typeof given !== "object") throw new Error("nothing was given");
    const before = await spentOf("shop");
    const old = { ...given, organizationId: null };
    expect(await gifts.replace(old, signedWith(99), { network: "base", more: 1n })).toBe(true);
    expect(await spentOf("shop")).toEqual(before);
  });
});
