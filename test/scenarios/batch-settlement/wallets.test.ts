import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import {
  type ChannelConfig,
  channelId,
  depositNonce,
  receiveHash,
  voucherDigest,
} from "../../../src/methods/batch-settlement/channel.ts";
import { digestUnder, domainSeparator } from "../../../src/methods/eip712.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { type TestPayerName, testPayers } from "../../../src/payer/test-payers.ts";
import { zeroAddress } from "../../../src/protocol/wire-values.ts";
import { actionsOf, channelRequirements, readChannelState } from "../../support/channels.ts";
import { runningChain } from "../../support/running-chain.ts";
import { type Body, post, startTestHarness } from "../../support/service.ts";

/* Channels without a key for vouchers: the payer's own account signs them, or the code of its wallet says what is signed. */

let harness: RunningHarness;
let chain: HarnessChain;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], payTo: "any" });
  chain = runningChain(harness, "base");
});
afterAll(() => harness?.close());

/** A deposit of 10,000 units with a voucher for 1,000, both signed by the key of a test payer. */
async function signDeposit(name: TestPayerName): Promise<Body> {
  const { address: payer, privateKey } = testPayers[name];
  const signer = privateKeyToAccount(privateKey);
  const { asset, network } = chain;
  const { address: receiver } = harnessAccounts.recipient;
  const { address: receiverAuthorizer } = harnessAccounts.authorizer;
  const salt = `0x${"07".repeat(32)}` as const;
  const channelConfig: ChannelConfig = {
    ...{ payer, payerAuthorizer: zeroAddress, receiver, receiverAuthorizer },
    ...{ token: asset.address, withdrawDelay: 900, salt },
  };
  const id = channelId(channelConfig, network.chainId);
  const times = { validAfter: 0n, validBefore: (await chain.now()) + 300n };
  const nonce = depositNonce(id, salt);
  const signed = { from: payer, token: asset.address, amount: 10_000n, channel: id, nonce };
  const hash = digestUnder(domainSeparator(asset, network.chainId), receiveHash(signed, times));
  const voucher = {
    ...{ channelId: id, maxClaimableAmount: "1000" },
    signature: await signer.sign({ hash: voucherDigest(id, 1_000n, network.chainId) }),
  };
  const erc3009Authorization = {
    ...{ validAfter: "0", validBefore: `${times.validBefore}`, salt },
    signature: await signer.sign({ hash }),
  };
  const deposit = { amount: "10000", authorization: { erc3009Authorization } };
  const accepted = channelRequirements(chain, { receiver, receiverAuthorizer });
  const payload = { type: "deposit", channelConfig, voucher, deposit };
  return { paymentPayload: { x402Version: 2, accepted, payload }, paymentRequirements: accepted };
}

test.each(["funded", "smartWallet"] as const)("%s deposits, buys, and is claimed from", async (name) => {
  const body = await signDeposit(name);
  const { payload } = body.paymentPayload;
  expect((await post(harness, "verify", body)).body).toMatchObject({ isValid: true });
  expect((await post(harness, "settle", body)).body).toMatchObject({ success: true, amount: "10000" });
  const asVoucher = (voucher: object) => {
    const { channelConfig } = payload;
    const changed = { type: "voucher", channelConfig, voucher };
    return { ...body, paymentPayload: { ...body.paymentPayload, payload: changed } };
  };
  expect((await post(harness, "verify", asVoucher(payload.voucher))).body).toMatchObject({ isValid: true });
  const forged = { ...payload.voucher, maxClaimableAmount: "1001" };
  expect((await post(harness, "verify", asVoucher(forged))).body).toMatchObject({
    ...{ isValid: false, invalidReason: "invalid_batch_settlement_evm_voucher_signature" },
  });
  expect((await post(harness, "settle", actionsOf(chain, body).claim)).body).toMatchObject({ success: true });
  expect(await readChannelState(chain, payload.voucher.channelId)).toEqual([10_000n, 700n]);
});

test("a wallet that is not deployed yet cannot deposit", async () => {
  const body = await signDeposit("undeployedWallet");
  expect((await post(harness, "verify", body)).body).toMatchObject({
    ...{ isValid: false, invalidReason: "invalid_batch_settlement_evm_receive_authorization_signature" },
  });
});
