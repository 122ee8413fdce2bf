import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { networks } from "../../../src/payer/local-networks.ts";
import { networkNames } from "../../../src/protocol/networks.ts";

/* The tokens besides USDC that every local chain has, as a test uses them. */

let harness: Harness;
beforeAll(async () => {
  harness = await createHarness();
});
afterAll(() => harness?.close());

describe.each(networkNames)("on %s", (network) => {
  test.each(["plain", "usdt", "permit"] as const)("%s is paid with, and arrives", async (asset) => {
    const { recipient } = harness.organization;
    const { balanceOf, tokens } = harness.networks[network];
    expect(tokens[asset]).toEqual(networks[network].tokens[asset]);
    const before = await balanceOf(recipient, asset);
    const { verify, settle, receipt } = await harness.pay({ network, asset });
    expect(verify.body).toMatchObject({ isValid: true });
    expect(settle.body).toMatchObject({ success: true });
    expect(receipt?.status).toBe("success");
    expect((await balanceOf(recipient, asset)) - before).toBe(10_000n);
  });

  test("fee is not, and nothing moves", async () => {
    const { recipient } = harness.organization;
    const { verify, settle, receipt } = await harness.pay({ network, asset: "fee" });
    expect(verify.body).toMatchObject({ isValid: false, situation: "permit_would_revert" });
    expect(settle.body).toMatchObject({ success: false, situation: "permit_would_revert" });
    expect(receipt).toBeNull();
    expect(await harness.networks[network].balanceOf(recipient, "fee")).toBe(0n);
  });
});

test.each(["plain", "usdt", "permit"] as const)(
  "a wallet of one's own is given %s, approves it, takes that back",
  async (asset) => {
    const payer = generatePrivateKey();
    const account = privateKeyToAddress(payer);
    const { fund, approvePermit2, balanceOf } = harness.networks.base;
    const pay = async () => (await harness.pay({ network: "base", asset, payer, amount: 400n })).settle.body;
    expect(await pay()).toMatchObject({ errorReason: "permit2_insufficient_balance" });
    await fund(account, 1_000n, asset);
    expect(await pay()).toMatchObject({ errorReason: "permit2_allowance_required" });
    await approvePermit2(account, 500n, asset);
    // Of USDT, an approval would have to be taken back before.
    await approvePermit2(account, 450n, asset);
    expect(await pay()).toMatchObject({ success: true });
    expect(await balanceOf(account, asset)).toBe(600n);
    await approvePermit2(account, 0n, asset);
    expect(await pay()).toMatchObject({ errorReason: "permit2_allowance_required" });
  },
);

test("permit alone is approved by a signature that comes with the payment, all by a transaction", async () => {
  await harness.reset();
  const outcomes: Record<string, object> = {};
  for (const asset of ["plain", "usdt", "permit"] as const) {
    const bySignature = await harness.pay({ network: "polygon", asset, payer: "unapproved", approval: true });
    const byTransaction = await harness.pay({
      ...{ network: "polygon", asset, payer: "sponsored", approval: "transaction" },
    });
    outcomes[asset] = [bySignature, byTransaction].map(({ settle }) => settle.body);
  }
  const refused = { success: false, errorReason: "permit2_allowance_required" };
  expect(outcomes).toMatchObject({
    plain: [refused, { success: true }],
    usdt: [refused, { success: true }],
    permit: [{ success: true }, { success: true }],
  });
});

test("a token that is not there is refused, and so is EIP-3009 with one that has none", async () => {
  const pay = (more: object) => harness.pay({ network: "base", ...more });
  await expect(pay({ asset: "dai" })).rejects.toThrow("asset");
  const { settle } = await pay({ asset: "plain", method: "eip3009" });
  expect(settle.body).toMatchObject({ success: false });
});
