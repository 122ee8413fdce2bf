import { toClientEvmSigner } from "@x402/evm";
import { BatchSettlementEvmScheme } from "@x402/evm/batch-settlement/client";
import { hashTypedData } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { createPayerSigner } from "../../payer/sign-as.ts";
import { testPayers } from "../../payer/test-payers.ts";
import type { Hex } from "../../protocol/hex.ts";
import { waysToPay } from "../on-chain/ways-to-pay.ts";
import {
  type ChannelPurchase,
  configFor,
  type DepositTerms,
  exampleDeposit,
  signDeposit,
  signPurchase,
  signRefund,
  usualSalt,
} from "./sign-channel.ts";

/* What buyers sign, compared with what the public client signs. */

const chainId = 84_532;
const { address, privateKey } = testPayers.funded;
const account = privateKeyToAccount(privateKey);
const asset = { address: "0x036CbD53842c5426634e7929541eC2318f3dCF7e", name: "USDC", version: "2" } as const;
const payTo = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C";
const receiverAuthorizer = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";
const transfers = ["eip3009", "permit2"] as const;

const requirementsFor = (transfer: DepositTerms["transfer"]) => ({
  scheme: "batch-settlement",
  network: `eip155:${chainId}`,
  amount: "1000",
  asset: asset.address,
  payTo,
  maxTimeoutSeconds: 300,
  extra: {
    name: asset.name,
    version: asset.version,
    assetTransferMethod: transfer,
    receiverAuthorizer,
    withdrawDelay: 1_000,
  },
});

const offerFor = (transfer: DepositTerms["transfer"]) =>
  ({
    asset,
    payTo,
    extra: requirementsFor(transfer).extra,
  }) as const;

function read(payload: object, transfer: DepositTerms["transfer"]) {
  const paymentRequirements = requirementsFor(transfer);
  const paymentPayload = { x402Version: 2, accepted: paymentRequirements, payload };
  return waysToPay.parse({ x402Version: 2, paymentPayload, paymentRequirements }, undefined as never);
}

describe.each(transfers)("deposits by %s", (transfer) => {
  test("are, byte by byte, those of the public client", async () => {
    const { signTypedData } = account;
    const digests: Hex[] = [];
    const noting: typeof signTypedData = (typed) => {
      digests.push(hashTypedData(typed as never));
      return signTypedData(typed);
    };
    const client = new BatchSettlementEvmScheme(
      toClientEvmSigner({ ...account, signTypedData: noting } as never),
    );
    const { payload } = await client.createPaymentPayload(2, requirementsFor(transfer) as never);
    const { deposit } = payload as {
      deposit: { amount: string; authorization: Record<string, Record<string, Hex>> };
    };
    const {
      erc3009Authorization: { validBefore = "0", salt = usualSalt } = {},
      permit2Authorization: { nonce = "0", deadline = validBefore } = {},
    } = deposit.authorization;
    const config = configFor({ address }, offerFor(transfer));
    const purchase: ChannelPurchase = { config, chainId, max: 1_000n };
    const terms: DepositTerms = {
      asset,
      transfer,
      amount: BigInt(deposit.amount),
      validBefore: BigInt(deadline),
      salt: transfer === "permit2" ? `0x${BigInt(nonce).toString(16).padStart(64, "0")}` : salt,
    };
    expect(await signDeposit(account, purchase, terms)).toEqual(payload);
    const own: Hex[] = [];
    const signer = createPayerSigner(privateKey);
    const digestSigner = {
      ...signer,
      signDigest(digest: Hex) {
        own.push(digest);
        return signer.signDigest(digest);
      },
    };
    expect(await signDeposit(digestSigner, purchase, terms)).toEqual(payload);
    expect(own).toEqual(digests);
  });

  test("are read by the service, and so is an example that is not signed", async () => {
    const offer = offerFor(transfer);
    const purchase = { config: configFor({ address }, offer), chainId, max: 1_000n };
    const terms = { asset, transfer, amount: 5_000n, validBefore: 1_800_000_000n };
    const deposit = await signDeposit(account, purchase, terms);
    for (const payload of [deposit, exampleDeposit(offer, chainId, transfer)]) {
      expect(read(payload, transfer)).toMatchObject({
        ok: true,
        request: {
          payment: { method: `batch-settlement-${transfer === "permit2" ? "permit2-" : ""}deposit` },
        },
      });
    }
  });
});

test("vouchers and refunds are read by the service", async () => {
  const config = configFor({ address }, offerFor("eip3009"));
  const purchase = { config, chainId, max: 2_000n };
  const voucher = await signPurchase(account, purchase);
  const refund = await signRefund(account, purchase, 100n);
  expect(refund).toEqual({ ...voucher, type: "refund", amount: "100" });
  for (const payload of [voucher, refund]) {
    expect(read(payload, "eip3009")).toMatchObject({
      ok: true,
      request: { payment: { method: "batch-settlement-voucher", signature: voucher.voucher.signature } },
    });
  }
});

test("an offer without somebody who may claim is refused", () => {
  const { extra, ...offer } = offerFor("eip3009");
  expect(() =>
    configFor({ address }, { ...offer, extra: { ...extra, receiverAuthorizer: undefined } }),
  ).toThrow(/receiverAuthorizer/);
});
