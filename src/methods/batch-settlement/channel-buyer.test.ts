import { expect, test } from "vitest";
import { recoverSigner } from "../../chain/signing/recover-signer.ts";
import { signerAs } from "../../payer/sign-as.ts";
import type { TestPayerName } from "../../payer/test-payers.ts";
import { uintWord } from "../../protocol/hex.ts";
import { createChannelBuyer } from "./channel-buyer.ts";
import { configFor, signPurchase } from "./sign-channel.ts";

/* What a buyer signs next, by what its channel holds, by receipts, and by what shops say was charged before. */

const offer = {
  chainId: 84_532,
  asset: { address: "0x036CbD53842c5426634e7929541eC2318f3dCF7e", name: "USDC", version: "2" },
  payTo: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
  extra: { receiverAuthorizer: "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC", minDeposit: "3000" },
  value: 1_000n,
  transfer: "eip3009",
  until: 2_000_000_000n,
} as const;

/** A buyer whose channel holds a balance, and was claimed from. */
function buyerWith(channel: { balance: bigint; claimed?: bigint }, payer: TestPayerName = "funded") {
  const words = () => `0x${uintWord(channel.balance)}${uintWord(channel.claimed ?? 0n)}`;
  return createChannelBuyer(signerAs(payer), { call: async () => words(), recover: recoverSigner });
}

const receipt = (chargedAmount: string) => ({ success: true, extra: { chargedAmount } });

/** The ceiling and the deposit of what is signed. */
async function signed(buyer: ReturnType<typeof buyerWith>, terms: Partial<typeof offer> | object = {}) {
  const purchase = await buyer.sign({ ...offer, ...terms });
  const { voucher, deposit } = purchase.payload as Record<string, Record<string, string>>;
  return { ...purchase, max: voucher?.maxClaimableAmount, deposits: deposit?.amount };
}

test("it deposits what the shop suggests, or five times the price, and at least what is missing", async () => {
  expect(await signed(buyerWith({ balance: 0n }))).toMatchObject({ max: "1000", deposits: "3000" });
  const { minDeposit: _, ...extra } = offer.extra;
  expect(await signed(buyerWith({ balance: 0n }), { extra })).toMatchObject({ deposits: "5000" });
  const claimed = buyerWith({ balance: 10_000n, claimed: 10_000n });
  expect(await signed(claimed, { value: 9_000n })).toMatchObject({ max: "19000", deposits: "45000" });
  expect(await signed(buyerWith({ balance: 1_000n }))).toMatchObject({ max: "1000", deposits: undefined });
});

test("it deposits no more than it may, unless the price needs it", async () => {
  const extra = { ...offer.extra, minDeposit: `${2n ** 200n}` };
  const most = 1_500n;
  expect(await signed(buyerWith({ balance: 0n }), { extra, most })).toMatchObject({ deposits: "1500" });
  const dear = signed(buyerWith({ balance: 0n }), { extra, most, value: 2_000n });
  expect(await dear).toMatchObject({ deposits: "2000" });
});

test("it signs for what receipts say was charged, and the price, and believes none above the price", async () => {
  const buyer = buyerWith({ balance: 5_000n });
  (await signed(buyer)).learn(receipt("700"));
  const next = await signed(buyer);
  expect(next.max).toBe("1700");
  for (const charged of ["1001", "-1", "all", ""]) next.learn(receipt(charged));
  next.learn({ success: true });
  expect((await signed(buyer)).max).toBe("1700");
});

test("it signs for no less than what was claimed", async () => {
  expect((await signed(buyerWith({ balance: 5_000n, claimed: 1_234n }))).max).toBe("2234");
});

/** The 402 of a shop that knows another sum, with a voucher of a payer. */
async function correction(
  charged: string,
  signedMax: bigint,
  payer: TestPayerName = "funded",
  chainId = 84_532,
) {
  const config = configFor(signerAs("funded"), offer);
  const { voucher } = await signPurchase(signerAs(payer), { config, chainId, max: signedMax });
  const { signature } = voucher;
  const extra = {
    ...offer.extra,
    channelState: { channelId: voucher.channelId, chargedCumulativeAmount: charged },
    voucherState: { signedMaxClaimable: `${signedMax}`, signature },
  };
  return { x402Version: 2, accepts: [{ scheme: "exact" }, { scheme: "batch-settlement", extra }] };
}

test("it goes on from a sum that the shop proves with its own voucher", async () => {
  const buyer = buyerWith({ balance: 9_000n });
  const first = await signed(buyer);
  expect(first.recover(await correction("3000", 3_500n))).toBe(true);
  const second = await signed(buyer);
  expect(second.max).toBe("4000");
  expect(second.recover(await correction("3000", 3_500n))).toBe(false);
});

test("what a shop refuses is signed again with the same deposit, which covers all that the shop may say", async () => {
  const buyer = buyerWith({ balance: 0n });
  const first = await signed(buyer);
  // The voucher of the purchase itself proves no more than that the shop has it.
  expect(first.recover(await correction("1000", 1_000n))).toBe(true);
  const again = await signed(buyer);
  expect(again).toMatchObject({ max: "2000", deposits: "3000" });
  expect(Object(again.payload).deposit).toEqual(Object(first.payload).deposit);
  expect(again.recover(await correction("2001", 2_001n))).toBe(false);
  const later = await signed(buyer);
  expect(Object(later.payload).deposit).not.toEqual(Object(first.payload).deposit);
});

test.each([1.5, 899, 2_592_001, 1e300, -1, NaN])(
  "a withdrawDelay of %s is named, and not signed",
  async (withdrawDelay) => {
    const wrong = signed(buyerWith({ balance: 0n }), { extra: { ...offer.extra, withdrawDelay } });
    await expect(wrong).rejects.toThrow(/withdrawDelay/);
  },
);

test("it believes no sum that its own vouchers do not cover", async () => {
  const buyer = buyerWith({ balance: 9_000n });
  const purchase = await signed(buyer);
  const unproven = [
    await correction("3001", 3_000n),
    await correction("3000", 3_000n, "empty"),
    await correction("3000", 3_000n, "funded", 8_453),
    { accepts: [{ extra: { channelState: { chargedCumulativeAmount: "3000" } } }] },
    { accepts: [{ extra: { channelState: {}, voucherState: { signature: "0x" } } }] },
    undefined,
  ];
  for (const challenge of unproven) expect(purchase.recover(challenge)).toBe(false);
  expect((await signed(buyer)).max).toBe("1000");
});

test("a wallet's vouchers are those of its owner", async () => {
  const { payload } = await signed(buyerWith({ balance: 9_000n }, "smartWallet"));
  const { channelConfig } = payload as { channelConfig: object };
  const { address: payer, owner: payerAuthorizer } = signerAs("smartWallet");
  expect(channelConfig).toMatchObject({ payer, payerAuthorizer });
});

test("on a chain without the contract it signs nothing", async () => {
  const buyer = createChannelBuyer(signerAs("funded"), { call: async () => "0x", recover: recoverSigner });
  await expect(signed(buyer)).rejects.toThrow(/no contract/);
});
