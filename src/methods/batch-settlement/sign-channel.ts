import { type Address, type Hex, isAddress, toHex } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { tokenSignature } from "../../protocol/signed-payment.ts";
import { parseUint256, propertyOf, zeroAddress } from "../../protocol/wire-values.ts";
import { KitError } from "../../util/errors.ts";
import { digestUnder, domainSeparator } from "../eip712.ts";
import type { PaymentSigner } from "../payer-terms.ts";
import { permit2Address, permit2Separator } from "../permit2-domain.ts";
import {
  type ChannelConfig,
  channelDomain,
  channelId,
  channelTypes,
  depositNonce,
  permitHash,
  receiveHash,
  voucherDigest,
  withdrawDelays,
} from "./channel.ts";
import { batchSettlementAddress, erc3009CollectorAddress, permit2CollectorAddress } from "./contracts.ts";

/*
 * Signs deposits, vouchers and refund requests for buyers, in the `paymentPayload.payload` format of the public client.
 * Runs in a browser.
 */

/** The payer of a channel. If it is a wallet, its owner's key signs the vouchers. */
export type ChannelPayer = { address: Address; owner?: Address | undefined };

/** The terms of an offer that define a channel. `extra` has `receiverAuthorizer` and `withdrawDelay`. */
export type ChannelOffer = { asset: Pick<Asset, "address">; payTo: Address; extra: unknown };

/** The salt of a buyer's only channel with a shop; fixed, so that a stateless buyer finds the channel again. */
export const usualSalt: Hex = `0x${"00".repeat(32)}`;

/**
 * The config of the channel that a payer uses for an offer.
 *
 * @throws {KitError} if the offer has no receiverAuthorizer, or a withdrawDelay that the contract refuses
 */
export function configFor(
  { address: payer, owner: payerAuthorizer = payer }: ChannelPayer,
  { asset, payTo: receiver, extra }: ChannelOffer,
  salt: Hex = usualSalt,
): ChannelConfig {
  const receiverAuthorizer = propertyOf(extra, "receiverAuthorizer");
  if (!isAddress(receiverAuthorizer) || BigInt(receiverAuthorizer) === 0n) {
    throw new KitError("An offer of scheme batch-settlement needs receiverAuthorizer in extra", {
      hints: ["The shop has it from /supported, or has a key of its own."],
    });
  }
  const delay = propertyOf(extra, "withdrawDelay");
  const withdrawDelay = typeof delay === "number" ? delay : withdrawDelays.least;
  const { least, most } = withdrawDelays;
  if (!(Number.isInteger(withdrawDelay) && withdrawDelay >= least && withdrawDelay <= most)) {
    throw new KitError(
      `extra.withdrawDelay of an offer is ${delay}: it must be whole seconds, ${least} to ${most}`,
    );
  }
  return { payer, payerAuthorizer, receiver, receiverAuthorizer, token: asset.address, withdrawDelay, salt };
}

/** A message in the two forms that signers accept: a digest, and typed data. */
type Message = {
  digest: Hex;
  domain: { name: string; version?: string; chainId: number; verifyingContract: Address };
  /** Encoded types, the primary one first. */
  types: readonly [string, ...string[]];
  message: Record<string, unknown>;
};

/** Parses an encoded type, such as `Voucher(bytes32 channelId,uint128 maxClaimableAmount)`, into its name and fields. */
function readType(encoded: string) {
  const [primaryType = "", members = ""] = encoded.slice(0, -1).split("(");
  const fields = members.split(",").map((member) => {
    const [type = "", name = ""] = member.split(" ");
    return { name, type };
  });
  return [primaryType, fields] as const;
}

function sign(signer: PaymentSigner, { digest, domain, types, message }: Message): Hex | Promise<Hex> {
  if ("signDigest" in signer) return signer.signDigest(digest);
  const [primaryType] = readType(types[0]);
  return signer.signTypedData({
    domain,
    types: Object.fromEntries(types.map(readType)),
    primaryType,
    message,
  });
}

/** A voucher in the format of payloads. */
export type WrittenVoucher = { channelId: Hex; maxClaimableAmount: string; signature: Hex };

/** Signs the total that may be claimed from a channel, in the token's smallest unit. */
async function signVoucher(
  signer: PaymentSigner,
  config: ChannelConfig,
  chainId: number,
  maxClaimableAmount: bigint,
): Promise<WrittenVoucher> {
  const id = channelId(config, chainId);
  const signed = await sign(signer, {
    digest: voucherDigest(id, maxClaimableAmount, chainId),
    domain: { ...channelDomain, chainId, verifyingContract: batchSettlementAddress },
    types: [channelTypes.voucher],
    message: { channelId: id, maxClaimableAmount },
  });
  // The contract does not support undeployed wallets.
  const signature = tokenSignature(signed);
  return { channelId: id, maxClaimableAmount: `${maxClaimableAmount}`, signature };
}

/** A purchase on a channel. `max` is the total charged before plus the price, in the token's smallest unit. */
export type ChannelPurchase = { config: ChannelConfig; chainId: number; max: bigint };

/** Signs a purchase that earlier deposits pay for. */
export async function signPurchase(signer: PaymentSigner, { config, chainId, max }: ChannelPurchase) {
  const voucher = await signVoucher(signer, config, chainId, max);
  return { type: "voucher", channelConfig: config, voucher } as const;
}

/** Signs a request for a refund of all that is left in a channel, or of `amount`. `max` is the total charged. */
export async function signRefund(
  signer: PaymentSigner,
  { config, chainId, max }: ChannelPurchase,
  amount?: bigint,
) {
  const voucher = await signVoucher(signer, config, chainId, max);
  const partial = amount === undefined ? {} : { amount: `${amount}` };
  return { type: "refund", channelConfig: config, voucher, ...partial } as const;
}

/** How much to deposit for a purchase: the shop's suggestion or five times the price, but at least what is missing. */
export function depositFor(price: bigint, extra: unknown, missing: bigint): bigint {
  const announced = propertyOf(extra, "minDeposit");
  const suggested = typeof announced === "string" ? (parseUint256(announced) ?? 0n) : 0n;
  const target = suggested > 0n && suggested >= price ? suggested : 5n * price;
  return missing > target ? missing : target;
}

/** A deposit: `amount` in the token's smallest unit, times in unix seconds. */
export type DepositTerms = {
  asset: Pick<Asset, "address" | "name" | "version">;
  transfer: "eip3009" | "permit2";
  amount: bigint;
  /** Exclusive with EIP-3009, inclusive with Permit2. */
  validBefore: bigint;
  /** Exclusive. Default: 0. Not used with Permit2. */
  validAfter?: bigint;
  /** The salt of the nonce, or Permit2's nonce. Default: random. */
  salt?: Hex | undefined;
};

/** Signs a deposit and the purchase that comes with it. */
export async function signDeposit(signer: PaymentSigner, purchase: ChannelPurchase, terms: DepositTerms) {
  const { config, chainId, max } = purchase;
  const { message, written } =
    terms.transfer === "permit2" ? permit(purchase, terms) : authorization(purchase, terms);
  const signature = await sign(signer, message);
  const voucher = await signVoucher(signer, config, chainId, max);
  return writeDeposit(config, voucher, terms.amount, written(signature));
}

function writeDeposit(
  channelConfig: ChannelConfig,
  voucher: WrittenVoucher,
  amount: bigint,
  authorization: object,
) {
  return {
    type: "deposit",
    channelConfig,
    voucher,
    deposit: { amount: `${amount}`, authorization },
  } as const;
}

type Deposit = { message: Message; written(signature: Hex): object };

/** A random salt for a new channel or deposit. */
export const randomSalt = () => toHex(globalThis.crypto.getRandomValues(new Uint8Array(32)));

/** The EIP-3009 authorization of a deposit; its payee is the collector. */
function authorization(
  { config, chainId }: ChannelPurchase,
  { asset, amount, validBefore, validAfter = 0n, salt = randomSalt() }: DepositTerms,
): Deposit {
  const { payer: from, token } = config;
  const channel = channelId(config, chainId);
  const nonce = depositNonce(channel, salt);
  const { name, version } = asset;
  const hash = receiveHash({ from, token, amount, channel, nonce }, { validAfter, validBefore });
  const times = { validAfter: `${validAfter}`, validBefore: `${validBefore}` };
  return {
    message: {
      digest: digestUnder(domainSeparator(asset, chainId), hash),
      domain: { name, version, chainId, verifyingContract: token },
      types: [channelTypes.receive],
      message: { from, to: erc3009CollectorAddress, value: amount, validAfter, validBefore, nonce },
    },
    written: (signature) => ({ erc3009Authorization: { ...times, salt, signature } }),
  };
}

/** The Permit2 permit of a deposit; its spender is the collector. */
function permit(
  { config, chainId }: ChannelPurchase,
  { amount, validBefore: deadline, salt = randomSalt() }: DepositTerms,
): Deposit {
  const { payer: from, token } = config;
  const channel = channelId(config, chainId);
  const hash = permitHash({ from, token, amount, channel, nonce: salt }, deadline);
  const [nonce, spender, witness] = [BigInt(salt), permit2CollectorAddress, { channelId: channel }];
  const permitted = { token, amount: `${amount}` };
  const signed = { from, permitted, spender, nonce: `${nonce}`, deadline: `${deadline}`, witness };
  return {
    message: {
      digest: digestUnder(permit2Separator(chainId), hash),
      domain: { name: "Permit2", chainId, verifyingContract: permit2Address },
      types: [channelTypes.permit, channelTypes.permitted, channelTypes.witness],
      message: { permitted: { token, amount }, spender, nonce, deadline, witness },
    },
    written: (signature) => ({ permit2Authorization: { ...signed, signature } }),
  };
}

/** An example of a deposit for an offer: well formed but not signed, from the zero address, with signatures of zeros. */
export function exampleDeposit(offer: ChannelOffer, chainId: number, transfer: DepositTerms["transfer"]) {
  const config = configFor({ address: zeroAddress }, offer);
  const asset = { ...offer.asset, name: "", version: "" };
  const terms = { asset, transfer, amount: 1n, validBefore: 1n, salt: usualSalt };
  const purchase = { config, chainId, max: 1n };
  const { written } = transfer === "permit2" ? permit(purchase, terms) : authorization(purchase, terms);
  const signature: Hex = `0x${"00".repeat(65)}`;
  const voucher = { channelId: channelId(config, chainId), maxClaimableAmount: "1", signature };
  return writeDeposit(config, voucher, terms.amount, written(signature));
}
