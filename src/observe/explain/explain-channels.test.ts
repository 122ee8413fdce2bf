import { expect, test } from "vitest";
import { type ChannelConfig, channelId, voucherDigest } from "../../methods/batch-settlement/channel.ts";
import { signDeposit, signPurchase } from "../../methods/batch-settlement/sign-channel.ts";
import { createPayerSigner } from "../../payer/sign-as.ts";
import { testPayers } from "../../payer/test-payers.ts";
import type { Hex } from "../../protocol/hex.ts";
import { networks } from "../../protocol/networks.ts";
import { explain } from "./explain-input.ts";

/* What `explain` finds out about signatures of channels: for what they were made, where that is not what the escrow takes. */

const { usdc, chainId, caip2 } = networks.base;
const { address: payer, privateKey } = testPayers.funded;
const { privateKey: otherKey } = testPayers.empty;
const receiver = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
const receiverAuthorizer = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
const extra = { name: usdc.name, version: usdc.version, receiverAuthorizer, withdrawDelay: 900 };
const requirements = {
  scheme: "batch-settlement",
  network: caip2,
  amount: "1000",
  asset: usdc.address,
  payTo: receiver,
  maxTimeoutSeconds: 60,
  extra,
};
const config: ChannelConfig = {
  ...{ payer, payerAuthorizer: payer, receiver, receiverAuthorizer, token: usdc.address },
  ...{ withdrawDelay: 900, salt: `0x${"00".repeat(32)}` },
};
const contracts = { mainnet: receiverAuthorizer, testnet: receiverAuthorizer } as const;
const context = { contracts, payTo: "any", now: 1_000n } as const;

const signer = (key: Hex) => createPayerSigner(key);
const purchase = { config, chainId, max: 1_000n };
const terms = { asset: usdc, transfer: "eip3009", amount: 10_000n, validBefore: 2_000n } as const;

const findingsOf = (payload: object, changed: object = {}) => {
  const paymentRequirements = { ...requirements, ...changed };
  const paymentPayload = { x402Version: 2, accepted: paymentRequirements, payload };
  return explain(JSON.stringify({ paymentPayload, paymentRequirements }), context).findings;
};

const id = channelId(config, chainId);
const voucherOver = async (digest: Hex, key: Hex = privateKey) => ({
  type: "voucher",
  channelConfig: config,
  voucher: { channelId: id, maxClaimableAmount: "1000", signature: await signer(key).signDigest(digest) },
});

test("a good deposit and a good voucher have nothing wrong", async () => {
  expect(findingsOf(await signDeposit(signer(privateKey), purchase, terms))).toEqual([]);
  expect(findingsOf(await signPurchase(signer(privateKey), purchase))).toEqual([]);
});

const otherId = channelId({ ...config, salt: `0x${"01".repeat(32)}` }, chainId);

test.each([
  ["another chain", voucherDigest(id, 1_000n, networks["base-sepolia"].chainId), /chain 84532/],
  ["the channel of another chain", voucherDigest(channelId(config, 1), 1_000n, 1), /chain 1,/],
  ["the whole deposit", voucherDigest(id, 0n, chainId), /signed 0,/],
  ["another channel", voucherDigest(otherId, 1_000n, chainId), /recovers to/],
])("a voucher that was signed for %s", async (_name, digest, got) => {
  const [found, ...more] = findingsOf(await voucherOver(digest));
  expect(more).toEqual([]);
  expect(found).toMatchObject({ at: "voucher.signature", situation: "signature_wrong" });
  expect(found?.got).toMatch(got);
});

test("a voucher by another key, below its price, and with a wrong v", async () => {
  const digest = voucherDigest(id, 1_000n, chainId);
  expect(findingsOf(await voucherOver(digest, otherKey))).toMatchObject([{ at: "voucher.signature" }]);
  const good = await voucherOver(digest);
  expect(findingsOf(good, { amount: "1001" })).toMatchObject([{ at: "voucher.maxClaimableAmount" }]);
  const signature = good.voucher.signature.replace(/1(b|c)$/, (_v, last) => (last === "b" ? "00" : "01"));
  expect(findingsOf({ ...good, voucher: { ...good.voucher, signature } })).toMatchObject([
    { at: "voucher.signature", expected: "1b or 1c" },
  ]);
});

test.each([
  ["its salt alone", { salt: `0x${"05".repeat(32)}` }, /recovers/],
  ["the domain of another token", { asset: { ...usdc, name: "USDC" } }, /name "USDC"/],
] as const)("a deposit that was signed for %s", async (_name, changed, got) => {
  const deposit = await signDeposit(signer(privateKey), purchase, { ...terms, ...changed });
  const { erc3009Authorization } = deposit.deposit.authorization as { erc3009Authorization: object };
  const salt = `0x${"06".repeat(32)}`;
  const authorization = "salt" in changed ? { ...erc3009Authorization, salt } : erc3009Authorization;
  const payload = {
    ...deposit,
    deposit: { ...deposit.deposit, authorization: { erc3009Authorization: authorization } },
  };
  const [found] = findingsOf(payload);
  expect(found).toMatchObject({ at: "deposit.authorization.erc3009Authorization.signature" });
  expect(found?.got).toMatch(got);
});

test("an offer that nobody could claim from, or of a delay that the escrow does not take", () => {
  const findings = (changed: object) => {
    const accepts = [{ ...requirements, extra: { ...extra, ...changed } }];
    return explain(JSON.stringify({ x402Version: 2, accepts }), context).findings.map(({ at }) => at);
  };
  expect(findings({})).toEqual([]);
  expect(findings({ receiverAuthorizer: undefined })).toEqual(["accepts[0].extra.receiverAuthorizer"]);
  expect(findings({ withdrawDelay: 60 })).toEqual(["accepts[0].extra.withdrawDelay"]);
  expect(findings({ name: "Dollars" })).toEqual(["accepts[0].extra"]);
});

test("an error of the escrow, as a client without its ABI prints it, is named", () => {
  for (const text of [
    'ContractFunctionExecutionError: unable to decode signature "0x7d8242b6"',
    "execution reverted, data: 0xf1789775",
    "reverted with InvalidRefundNonce()",
  ]) {
    const [found] = explain(text, context).findings;
    expect(found).toMatchObject({
      mistake: "client-error",
      fix: expect.stringMatching(/claim|refundNonce/i),
    });
  }
});
