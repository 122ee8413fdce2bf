import { describe, expect, test } from "vitest";
import { backends, useTestDatabase } from "../../test/support/databases.ts";
import {
  failed,
  hashOf,
  openTestLedger,
  operator,
  paymentOf,
  settled,
  signAsIf,
} from "../../test/support/ledger/test-ledger.ts";
import type { Hex } from "../protocol/hex.ts";
import type { SettlesOf } from "./ledger.ts";

const { chainId, asset, payer } = paymentOf("a");
const [code, otherCode] = [hashOf("code"), hashOf("other code")];
const ofPayer: SettlesOf = { kind: "payer", chainId, asset, payer };
const shop = { organizationId: "org_shop", network: "base" } as const;
const ofCode: SettlesOf = { kind: "code", ...shop, payerCode: code };
const ofShop: SettlesOf = { kind: "organization", ...shop };

describe.each(backends)("on $name, settles of the last minutes", (backend) => {
  const database = useTestDatabase(backend);

  async function open() {
    const { clock, ledger } = await openTestLedger(database);
    let txNonce = 0;
    const claim = async (changes: Parameters<typeof paymentOf>[1] = {}) => {
      clock.advance(1_000);
      const payment = paymentOf(txNonce, { balanceBlock: 50n, ...changes });
      expect((await ledger.claimAll([payment])).outcomes).toEqual(["claimed"]);
      return { payment, txNonce: txNonce++ };
    };
    return {
      clock,
      claim,
      /** Settles a payment in a block of its own; gives when it was decided. */
      async decide(ending: typeof failed, changes: Parameters<typeof paymentOf>[1] = {}): Promise<number> {
        const { payment, txNonce } = await claim(changes);
        await ledger.mine(txNonce, [ending(payment)], 60n + BigInt(txNonce));
        return clock.now();
      },
      hasPaidLast: (changes: { organizationId?: string; payerCode?: Hex } = {}) =>
        ledger.hasPaidLast({ chainId, asset, payer }, { ...shop, payerCode: code, ...changes }),
      recent: (of: SettlesOf, withinMs = 600_000) => ledger.recentSettles(of, clock.now() - withinMs),
    };
  }

  test("are none in the beginning", async () => {
    const { recent } = await open();
    for (const of of [ofPayer, ofCode, ofShop]) {
      expect(await recent(of)).toEqual({ underWay: 0, settled: 0, reverted: 0, lastRevertedAt: null });
    }
  });

  test("of a payer are its own, whatever became of the newest, and end with the time", async () => {
    const { decide, claim, recent, clock } = await open();
    await decide(failed);
    await decide(settled);
    const last = await decide(failed);
    await decide(settled);
    await decide(failed, { payer: 2 });
    await claim();
    expect(await recent(ofPayer)).toEqual({ underWay: 1, settled: 2, reverted: 2, lastRevertedAt: last });
    clock.advance(597_500);
    expect(await recent(ofPayer)).toMatchObject({ underWay: 1, settled: 1, reverted: 0 });
    clock.advance(600_000);
    expect(await recent(ofPayer)).toEqual({ underWay: 1, settled: 0, reverted: 0, lastRevertedAt: null });
  });

  test("of code are those of all payers who have it, at one organization; plain accounts have none", async () => {
    const { decide, claim, recent } = await open();
    await decide(failed, { payerCode: code });
    await decide(failed, { payerCode: code, payer: 2, organizationId: "org_bakery" });
    await decide(settled, { payerCode: code, payer: 2 });
    const last = await decide(failed, { payerCode: code, payer: 3 });
    await claim({ payerCode: code, payer: 4 });
    await decide(failed, { payerCode: otherCode, payer: 5 });
    await decide(failed, { payer: 6 });
    expect(await recent(ofCode)).toEqual({ underWay: 1, settled: 1, reverted: 2, lastRevertedAt: last });
  });

  test("of a payer with code end with a success, or do not, at one organization", async () => {
    const { decide, claim, hasPaidLast } = await open();
    expect(await hasPaidLast()).toBe(false);
    await decide(failed, { payerCode: code });
    await decide(settled, { payerCode: code });
    expect(await hasPaidLast()).toBe(true);
    await decide(failed, { payerCode: otherCode });
    await decide(failed, { payerCode: code, payer: 2 });
    await decide(failed, { payerCode: code, organizationId: "org_bakery" });
    expect([
      await hasPaidLast(),
      await hasPaidLast({ payerCode: otherCode }),
      await hasPaidLast({ organizationId: "org_bakery" }),
    ]).toEqual([true, false, false]);
    await decide(failed, { payerCode: code });
    expect(await hasPaidLast()).toBe(false);
    await decide(settled, { payerCode: code });
    await claim({ payerCode: code });
    expect(await hasPaidLast()).toBe(false);
  });

  test("of an organization are those with code, and its reverts are different codes", async () => {
    const { decide, claim, recent } = await open();
    await decide(failed, { payerCode: code });
    await decide(failed, { payerCode: code, payer: 2 });
    const last = await decide(failed, { payerCode: otherCode, payer: 3 });
    await decide(settled, { payerCode: code, payer: 4 });
    await claim({ payerCode: code, payer: 5 });
    await decide(failed, { payer: 6 });
    await decide(failed, { payerCode: hashOf("a third"), payer: 7, organizationId: "org_bakery" });
    expect(await recent(ofShop)).toEqual({ underWay: 1, settled: 1, reverted: 2, lastRevertedAt: last });
  });
});

describe.each(backends)("on $name, the networks that have settlements", (backend) => {
  const database = useTestDatabase(backend);

  test("are found by their chains", async () => {
    const { ledger } = await openTestLedger(database);
    expect(await ledger.outcomes.networks()).toEqual([]);
    await ledger.claimAll([paymentOf("a"), paymentOf("b")]);
    const other = { address: operator, chainId: 43_114, maxUnmined: 16 };
    await ledger.introduceOperator(other.chainId, operator, 0);
    const payment = { ...paymentOf("c"), chainId: other.chainId, network: "avalanche", id: hashOf("c") };
    await ledger.claim(other, [payment], async () => ({ ...(await signAsIf(0)), hash: hashOf("other") }));
    expect(await ledger.outcomes.networks()).toEqual([
      { network: "base", chainId },
      { network: "avalanche", chainId: 43_114 },
    ]);
  });
});
