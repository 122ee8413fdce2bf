import type { FixtureRequest } from "../../../src/fixtures/engine/answer.ts";
import { signDigest } from "../../../src/fixtures/sign-digest.ts";
import { approvalExtension } from "../../../src/methods/approval.ts";
import { transactionExtension } from "../../../src/methods/approval-transaction.ts";
import {
  type ChannelConfig,
  claimBatchDigest,
  refundDigest,
} from "../../../src/methods/batch-settlement/channel.ts";
import { signDeposit, signPurchase } from "../../../src/methods/batch-settlement/sign-channel.ts";
import { signApproval } from "../../../src/methods/permit2/sign-approval.ts";
import {
  type NextTransaction,
  signApprovalTransaction,
} from "../../../src/methods/permit2/sign-approval-transaction.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { localTokens } from "../../../src/payer/local-chains.ts";
import { signerFor } from "../../../src/payer/sign-payment.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { type TestPayer, testPayers } from "../../../src/payer/test-payers.ts";
import { wrapForUndeployed } from "../../../src/payer/undeployed-wallet.ts";
import { create2Deployer } from "../../../src/protocol/create2.ts";
import { type Address, type Hex, keccak256Text } from "../../../src/protocol/hex.ts";
import { type Asset, networks } from "../../../src/protocol/networks.ts";
import { wrapErc6492 } from "../../../src/protocol/signed-payment.ts";
import { zeroAddress } from "../../../src/protocol/wire-values.ts";
import type { Random } from "../random.ts";
import type { Body } from "../service.ts";

/*
 * Random sequences of requests, each about one channel: deposits, vouchers, claims, payouts and refunds; valid, invalid
 * and repeated.
 */

const network = networks.base;
const { chainId } = network;
const tokens: readonly Asset[] = [
  network.usdc,
  network.usdc,
  network.usdc,
  localTokens.plain,
  localTokens.fee,
];
const shopKey: Hex = `0x${"5b".repeat(32)}`;
const shop: Address = harnessAccounts.admin.address;

const payers = [
  ...Array.from({ length: 8 }, () => "funded" as const),
  ...(["unapproved", "unapproved", "approvedShort", "sponsored", "sponsored"] as const),
  ...(["undeployedWallet", "undeployedWallet", "undeployedWallet"] as const),
  ...(["empty", "blacklisted", "smartWallet", "delegated", "hijacked", "gasBurner"] as const),
];

const keys = [
  ...Array.from({ length: 12 }, () => testKeys.local),
  ...[testKeys.rival, testKeys.plainOnly, testKeys.minimumAmount, testKeys.gasBudget, testKeys.noRecipient],
  ...[testKeys.verifyOnly, testKeys.settleOnly],
];

const below = (random: Random, end: number) => random.between(0, end - 1);

export type Place = {
  /** The chain's time. */
  now: bigint;
  /** The address of a private key. */
  addressOf(privateKey: Hex): Address;
  /** The payer's next nonces: of an approval signed for a token, and of a transaction, with its fees. */
  nextOf(payer: Address, asset: Address): Promise<{ approval: bigint; transaction: NextTransaction }>;
};

/** Creates the requests of a sequence. */
export async function channelSequence(
  random: Random,
  name: string,
  { now, addressOf, nextOf }: Place,
): Promise<readonly FixtureRequest[]> {
  const pick = <T>(values: readonly T[]): T => values[below(random, values.length)] as T;
  const often = <T>(usual: T, ...others: readonly T[]): T =>
    below(random, 8) > 0 ? usual : pick([usual, ...others]);
  const payerName = pick(payers);
  const payer: TestPayer = testPayers[payerName];
  const token = pick(tokens);
  const transfer = token.version === "" ? "permit2" : pick(["eip3009", "permit2"] as const);
  const otherKey: Hex = keccak256Text(`${name} authorizer`);
  const isWallet = payer.owner !== undefined;
  const authorizers = ["other", "none", "own", "own", "own"] as const;
  const authorizer = pick(isWallet ? authorizers.slice(0, 2) : authorizers);
  const authorizerOf = { own: payer.address, other: addressOf(otherKey), none: zeroAddress };
  const isOwnShop = below(random, 3) === 0;
  const receiver = often(
    `0x${keccak256Text(`${name} receiver`).slice(26)}`,
    harnessAccounts.recipient.address,
    testPayers.blacklisted.address,
    payer.address,
  ) as Address;
  const config: ChannelConfig = {
    payer: payer.address,
    payerAuthorizer: authorizerOf[authorizer],
    receiver,
    receiverAuthorizer: isOwnShop ? addressOf(shopKey) : harnessAccounts.authorizer.address,
    token: token.address,
    withdrawDelay: often(900, 899, 2_592_000),
    salt: keccak256Text(name),
  };
  const signWith = (privateKey: Hex) => signerFor({ address: payer.address, privateKey }, signDigest);
  const payerSigner = signWith(payer.privateKey);
  const voucherSigner = authorizer === "other" ? signWith(otherKey) : payerSigner;
  const strangers = signWith(shopKey);
  const terms = (amount: string): Body => ({
    ...{ scheme: "batch-settlement", network: network.caip2, amount, asset: token.address, payTo: receiver },
    maxTimeoutSeconds: 300,
    extra: {
      ...{ name: token.name, version: token.version, assetTransferMethod: transfer },
      ...{ receiverAuthorizer: config.receiverAuthorizer, withdrawDelay: config.withdrawDelay },
    },
  });
  const skeleton = { ...terms("0"), maxTimeoutSeconds: 0, extra: {} };
  const next = await nextOf(payer.address, token.address);
  /** An approval of Permit2 by the payer: signed for the token, or as a transaction. */
  async function approve(limit: bigint, deadline: bigint): Promise<object> {
    const amount = often(limit, limit - 1n, 2n * limit);
    if (payerName !== "sponsored") {
      const terms = { asset: token, chainId, from: payer.address, amount, deadline, nonce: next.approval };
      return { [approvalExtension]: { info: await signApproval(often(payerSigner, strangers), terms) } };
    }
    const key = often(payer.privateKey, shopKey);
    const signer = { address: payer.address, signDigest: (digest: Hex) => signDigest(digest, key) };
    const terms = { asset: token.address, chainId, amount, ...next.transaction };
    return { [transactionExtension]: { info: await signApprovalTransaction(signer, terms) } };
  }
  let deposits = 0;
  let refunds = 0n;
  const ceiling = () => BigInt(pick([0, 1, 700, 1_000, 1_000, 2_000, 3_000, 10_000, 10_001]));
  const signer = () => often(voucherSigner, strangers);
  const rows = async () =>
    Promise.all(
      Array.from({ length: often(1, 0, 2, 3) }, async () => {
        const max = ceiling();
        const { voucher } = await signPurchase(signer(), { config, chainId, max });
        const channel = often(config, { ...config, salt: keccak256Text("another") });
        const totalClaimed = often(max, max + 1n, 0n, 500n);
        return { voucher: { channel, maxClaimableAmount: max }, signature: voucher.signature, totalClaimed };
      }),
    );
  type Row = Awaited<ReturnType<typeof rows>>[number];
  const batchSignature = (claims: readonly Row[]) =>
    signDigest(
      claimBatchDigest(
        claims.map(({ voucher, ...row }) => ({ ...voucher, ...row })),
        chainId,
      ),
      often(shopKey, otherKey),
    );

  type Made = { payload: object; requirements: Body; extensions?: object };
  const makers: readonly (() => Promise<Made>)[] = [
    async () => {
      deposits++;
      const asset = token;
      const validBefore = now + BigInt(often(80_000, -10, 3, 200_000));
      const validAfter = transfer === "permit2" ? {} : { validAfter: often(0n, now + 1_000n) };
      const salt = keccak256Text(`${name} ${often(deposits, 1)}`);
      const deposit = { asset, transfer, amount: often(10_000n, 0n, 1n), validBefore, salt, ...validAfter };
      const purchase = { config, chainId, max: ceiling() };
      const signed = await signDeposit(often(payerSigner, strangers), purchase, deposit);
      const { voucher } = await signPurchase(signer(), purchase);
      const authorization: { erc3009Authorization?: { signature: Hex } } = signed.deposit.authorization;
      const { erc3009Authorization: own } = authorization;
      if (own && payerName === "undeployedWallet") {
        const unwrapped = own.signature;
        own.signature = often(
          wrapForUndeployed(unwrapped),
          unwrapped,
          wrapErc6492(create2Deployer, "0x12", unwrapped),
          wrapErc6492(shop, "0x12", unwrapped),
        );
      }
      const requirements = terms(pick(["0", "700", "1000"]));
      const isBrought = transfer === "permit2" && payer.approved !== undefined && below(random, 4) > 0;
      const extensions = isBrought ? await approve(deposit.amount, often(validBefore, now)) : {};
      return { payload: { ...signed, voucher }, requirements, extensions };
    },
    async () => ({
      payload: await signPurchase(signer(), { config, chainId, max: ceiling() }),
      requirements: terms(pick(["0", "700", "1000"])),
    }),
    async () => {
      const { voucher } = await signPurchase(signer(), { config, chainId, max: ceiling() });
      return { payload: { type: "refund", channelConfig: config, voucher }, requirements: terms("0") };
    },
    async () => {
      const claims = await rows();
      const claimAuthorizerSignature =
        isOwnShop || below(random, 8) === 0 ? batchSignature(claims) : undefined;
      return { payload: { type: "claim", claims, claimAuthorizerSignature }, requirements: skeleton };
    },
    async () => ({
      payload: { type: "settle", receiver, token: token.address },
      requirements: skeleton,
    }),
    async () => {
      const claims = await rows();
      const { voucher } = await signPurchase(signer(), { config, chainId, max: ceiling() });
      const amount = BigInt(pick([0, 1, 300, 999_999]));
      const refundNonce = often(refunds, refunds + 1n);
      refunds += BigInt(below(random, 2));
      const digest = refundDigest(voucher.channelId, refundNonce, amount, chainId);
      const signatures = {
        claimAuthorizerSignature: batchSignature(claims),
        refundAuthorizerSignature: signDigest(digest, often(shopKey, otherKey)),
      };
      const payload = { type: "refund", channelConfig: config, voucher, amount, refundNonce, claims };
      return {
        payload: { ...payload, ...(isOwnShop || below(random, 8) === 0 ? signatures : {}) },
        requirements: skeleton,
      };
    },
  ];

  const sent: FixtureRequest[] = [];
  const steps = 3 + below(random, 10);
  for (let step = 0; step < steps; step++) {
    const again = below(random, 8) === 0 && sent.length > 0;
    if (again) {
      const { path, ...request } = pick(sent);
      sent.push({ ...request, path: often(path, "/v1/verify", "/v1/settle") });
      continue;
    }
    const kind = step === 0 ? 0 : below(random, makers.length);
    const { payload, requirements, extensions } = await (makers[kind] as (typeof makers)[number])();
    const accepted = structuredClone(requirements);
    const body: Body = JSON.parse(
      JSON.stringify(
        {
          x402Version: 2,
          paymentPayload: { x402Version: 2, accepted, payload, extensions },
          paymentRequirements: requirements,
        },
        (_key, value: unknown) => (typeof value === "bigint" ? `${value}` : value),
      ),
    );
    if (below(random, 6) === 0) spoil(body, random);
    const usual = kind === 0 ? pick(["verify", "settle", "settle"]) : kind < 3 ? "verify" : "settle";
    const { apiKey } = pick(keys);
    // The service has already sent the transaction when it finds the gas budget used up; the mock does not remember
    // that.
    const isForgotten = apiKey === testKeys.gasBudget.apiKey && payerName === "sponsored";
    sent.push({
      method: "POST",
      path: `/v1/${often(usual, "verify", "settle")}`,
      headers: {
        "content-type": "application/json",
        authorization: isForgotten ? testKeys.local.apiKey : apiKey,
      },
      body: JSON.stringify(body),
    });
  }
  return sent;
}

const values = [
  ...[null, undefined, "", "0", "1", "12n", -1, 900, 2 ** 40, `${2n ** 128n}`, {}, [], "permit2", "eip3009"],
  ...["deposit", "voucher", "claim", "settle", "refund", "0x", zeroAddress, `0x${"ab".repeat(32)}`],
  ...[
    `0x${"ab".repeat(65)}`,
    `0x${"01".repeat(64)}1b`,
    shop,
    network.usdc.address,
    "batch-settlement",
    "exact",
  ],
];

/** Replaces one member by another value, or removes it. */
function spoil(body: Body, random: Random): void {
  const objects: Body[] = [];
  const collect = (value: unknown) => {
    if (typeof value !== "object" || value === null) return;
    objects.push(value);
    Object.values(value).forEach(collect);
  };
  collect(body);
  const place = objects[below(random, objects.length)] ?? body;
  const names = Object.keys(place);
  const member = names[below(random, names.length)];
  if (member === undefined) return;
  const value = values[below(random, values.length)];
  if (value === undefined) delete place[member];
  else place[member] = structuredClone(value);
}
