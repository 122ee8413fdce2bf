import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
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
import { type TestPayer, testPayers } from "../../../src/payer/test-payers.ts";
import { undeployedWalletSalt, walletInitCode } from "../../../src/payer/undeployed-wallet.ts";
import { create2Address, create2Deployer } from "../../../src/protocol/create2.ts";
import type { Address, Hex } from "../../../src/protocol/hex.ts";
import { wrapErc6492 } from "../../../src/protocol/signed-payment.ts";
import { zeroAddress } from "../../../src/protocol/wire-values.ts";
import {
  actionsOf,
  buyerOf,
  channelRequirements,
  connectFacilitator,
  readChannelState,
  startChannelShop,
} from "../../support/channels.ts";
import { goods } from "../../support/merchant.ts";
import { runningChain } from "../../support/running-chain.ts";
import { type Body, balanceOf, post, sendFrom, startTestHarness } from "../../support/service.ts";

/* Channels without a key for vouchers: the payer's own account signs them, or the code of its wallet says what is signed. */

let harness: RunningHarness;
let chain: HarnessChain;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], payTo: "any" });
  chain = runningChain(harness, "base");
});
afterAll(() => harness?.close());

const newAccount = () => privateKeyToAccount(generatePrivateKey()).address;

type Depositor = Pick<TestPayer, "address" | "privateKey"> & {
  /** Makes the signature of a deposit from the key's; the same by default. */
  wrap?(signature: Hex): Hex;
  /** The key of the vouchers; none by default. */
  payerAuthorizer?: Address;
};

/** A deposit of 10,000 units with a voucher for 1,000, both signed by the key of a payer. */
async function signDeposit({
  address: payer,
  privateKey,
  wrap = (signature) => signature,
  payerAuthorizer = zeroAddress,
}: Depositor): Promise<Body> {
  const signer = privateKeyToAccount(privateKey);
  const { asset, network } = chain;
  const { address: receiver } = harnessAccounts.recipient;
  const { address: receiverAuthorizer } = harnessAccounts.authorizer;
  const salt = `0x${"07".repeat(32)}` as const;
  const channelConfig: ChannelConfig = {
    ...{ payer, payerAuthorizer, receiver, receiverAuthorizer },
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
    signature: wrap(await signer.sign({ hash })),
  };
  const deposit = { amount: "10000", authorization: { erc3009Authorization } };
  const accepted = channelRequirements(chain, { receiver, receiverAuthorizer });
  const payload = { type: "deposit", channelConfig, voucher, deposit };
  return { paymentPayload: { x402Version: 2, accepted, payload }, paymentRequirements: accepted };
}

/** A wallet that nobody has deployed, with 50,000 units: its own key's, and how its signatures are written. */
async function walletToCome(): Promise<Depositor & { owner: Address }> {
  const privateKey = generatePrivateKey();
  const { address: owner } = privateKeyToAccount(privateKey);
  const initCode = walletInitCode(owner);
  const address = create2Address(undeployedWalletSalt, initCode);
  await chain.fund(address, 50_000n);
  const call: Hex = `${undeployedWalletSalt}${initCode.slice(2)}`;
  return { address, owner, privateKey, wrap: (signature) => wrapErc6492(create2Deployer, call, signature) };
}

/** Buys on the channel of a deposit that is made, and has the shop claim what it was charged. */
async function buyAndClaim(body: Body) {
  const { payload } = body.paymentPayload;
  const asVoucher = (voucher: object) => {
    const { channelConfig } = payload;
    const changed = { type: "voucher", channelConfig, voucher };
    return { ...body, paymentPayload: { ...body.paymentPayload, payload: changed } };
  };
  expect((await post(harness, "verify", asVoucher(payload.voucher))).body).toMatchObject({ isValid: true });
  const forged = { ...payload.voucher, maxClaimableAmount: "1001" };
  expect((await post(harness, "verify", asVoucher(forged))).body).toMatchObject({
    ...{ isValid: false, invalidReason: reason("voucher_signature") },
  });
  expect((await post(harness, "settle", actionsOf(chain, body).claim)).body).toMatchObject({ success: true });
  expect(await readChannelState(chain, payload.voucher.channelId)).toEqual([10_000n, 700n]);
}

const reason = (name: string) => `invalid_batch_settlement_evm_${name}`;
const isDeployed = async (address: Hex) =>
  (await chain.node.request("eth_getCode", address, "latest")) !== "0x";

test.each(["funded", "smartWallet"] as const)("%s deposits, buys, and is claimed from", async (name) => {
  const body = await signDeposit(testPayers[name]);
  expect((await post(harness, "verify", body)).body).toMatchObject({ isValid: true });
  expect((await post(harness, "settle", body)).body).toMatchObject({ success: true, amount: "10000" });
  await buyAndClaim(body);
});

describe("a wallet that is not deployed yet", () => {
  test.each([
    ["its owner's key", true],
    ["its own code", false],
  ])("deposits once, in one transaction; vouchers are signed for %s", async (_, hasKey) => {
    const wallet = await walletToCome();
    const body = await signDeposit({ ...wallet, ...(hasKey && { payerAuthorizer: wallet.owner }) });
    expect((await post(harness, "verify", body)).body).toMatchObject({
      isValid: true,
      extra: { balance: "0" },
    });
    expect(await isDeployed(wallet.address)).toBe(false);
    const { body: settled } = await post(harness, "settle", body);
    expect(settled).toMatchObject({
      ...{ success: true, amount: "10000", payer: wallet.address },
      extra: { channelState: { balance: "10000" } },
    });
    expect(await isDeployed(wallet.address)).toBe(true);
    expect((await post(harness, "settle", body)).body).toMatchObject({ situation: "settled_before" });
    expect(await balanceOf(harness, wallet.address)).toBe(40_000n);
    await buyAndClaim(body);
  });

  test("deposits by the public client, and buys on it", async () => {
    const { facilitator, exchanges } = connectFacilitator(harness.description.facilitator.url);
    const shop = await startChannelShop(chain, facilitator, { ownKey: true });
    onTestFinished(() => shop.close());
    const { address, owner, privateKey, wrap = String } = await walletToCome();
    const account = privateKeyToAccount(privateKey);
    const signTypedData = async (...given: Parameters<typeof account.signTypedData>) =>
      wrap(await account.signTypedData(...given)) as Hex;
    const buyer = buyerOf(chain, { address, signTypedData } as never, { voucherSigner: account });
    for (let purchase = 1; purchase <= 3; purchase++) {
      expect(await buyer.buy(shop.url)).toMatchObject({ status: 200, body: goods });
    }
    expect(exchanges.map(({ operation }) => operation)).toEqual(["verify", "settle"]);
    expect(await isDeployed(address)).toBe(true);
    const { channelConfig, voucher } = Object(exchanges[0]?.body).paymentPayload.payload;
    expect(channelConfig.payerAuthorizer).toBe(owner);
    expect(await readChannelState(chain, voucher.channelId)).toEqual([10_000n, 0n]);
  });

  test("that somebody deploys in between deposits all the same", async () => {
    const wallet = await walletToCome();
    const body = await signDeposit(wallet);
    const call = `${undeployedWalletSalt}${walletInitCode(wallet.owner).slice(2)}` as const;
    await sendFrom(harness, newAccount(), create2Deployer, call);
    expect((await post(harness, "verify", body)).body).toMatchObject({ isValid: true });
    expect((await post(harness, "settle", body)).body).toMatchObject({ success: true, amount: "10000" });
    await buyAndClaim(body);
  });

  const refused: readonly [string, string, (wallet: Depositor & { owner: Address }) => Depositor][] = [
    [
      "whose factory the facilitator does not call",
      "eip6492_factory_not_allowed",
      (wallet) => ({ ...wallet, wrap: (signature) => wrapErc6492(newAccount(), "0x12", signature) }),
    ],
    [
      "whose signature names no factory",
      "receive_authorization_signature",
      ({ address, privateKey }) => ({ address, privateKey }),
    ],
    [
      "whose factory deploys nothing",
      "deposit_simulation_failed",
      (wallet) => ({
        ...wallet,
        ...{ payerAuthorizer: wallet.owner },
        wrap: (signature) => wrapErc6492(create2Deployer, "0x12", signature),
      }),
    ],
    [
      "whose factory deploys nothing that could sign vouchers",
      "voucher_signature",
      (wallet) => ({ ...wallet, wrap: (signature) => wrapErc6492(create2Deployer, "0x12", signature) }),
    ],
    [
      "whose owner has not signed",
      "deposit_simulation_failed",
      (wallet) => {
        const privateKey = generatePrivateKey();
        const { address: payerAuthorizer } = privateKeyToAccount(privateKey);
        return { ...wallet, privateKey, payerAuthorizer };
      },
    ],
  ];
  test.each(refused)("%s cannot deposit: %s", async (_, name, change) => {
    const wallet = await walletToCome();
    const body = await signDeposit(change(wallet));
    for (const operation of ["verify", "settle"] as const) {
      const { invalidReason, errorReason } = (await post(harness, operation, body)).body;
      expect(invalidReason ?? errorReason).toBe(reason(name));
    }
    expect(await isDeployed(wallet.address)).toBe(false);
    expect(await balanceOf(harness, wallet.address)).toBe(50_000n);
  });
});
