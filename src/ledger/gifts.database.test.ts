import { beforeEach, describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import { createGifts } from "./create-gifts.ts";
import type { Gifts } from "./gifts.ts";
import type { LedgerTables } from "./rows.ts";

/*
 * Gas money for payers: once for each payer and token, and so much on a day, however many instances give it.
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
  beforeEach(async () => {
    time = 100 * day;
    const db = await database.open();
    gifts = createGifts(db.$extendTables<LedgerTables>(), () => time);
  });
  const give = (payer: number, { value = 10n, dailyLimit = 1_000n, mined = 7 } = {}) =>
    gifts.give(
      { chainId, asset, payer: payerOf(payer), sponsor, value },
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
    const outcomes = await Promise.all(asked.map((payer) => give(payer, { dailyLimit: 50n })));
    expect(outcomes.filter((one) => typeof one === "object")).toHaveLength(5);
    expect(await gifts.givenOn({ chainId, address: sponsor }, time)).toBe(50n);
    expect(await open()).toEqual([7, 8, 9, 10, 11]);
    time += day;
    expect(await give(20, { dailyLimit: 50n })).toMatchObject({ txNonce: 12 });
  });

  test("what cannot be signed takes no txNonce", async () => {
    const gift = { chainId, asset, payer: payerOf(1), sponsor, value: 1n };
    const sign = () => Promise.reject(new Error("no key"));
    await expect(gifts.give(gift, { mined: 7, dailyLimit: 9n }, sign)).rejects.toThrow("no key");
    expect(await gifts.find(gift)).toBeNull();
    expect(await give(1)).toMatchObject({ txNonce: 7 });
  });

  test("one that pays more takes the place of its transaction alone", async () => {
    const given = await give(1);
    if (typeof given !== "object") throw new Error("nothing was given");
    time += 1_000;
    const more = { ...signedWith(99), maxPriorityFeePerGas: 2n };
    await gifts.replace(given, more);
    expect(await gifts.find(given)).toEqual({ ...given, ...more, givenAt: time });
  });
});
