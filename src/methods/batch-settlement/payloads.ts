import {
  type Address,
  addressWord,
  byteWords,
  type Hex,
  keccak256,
  keccak256Text,
  uintWord,
} from "../../protocol/hex.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import {
  isRecord,
  optional,
  type Part,
  propertyOf,
  readBytes32,
  readInner,
  readPart,
  readSeconds,
  readSignature,
  readUint256,
  readWireAddress,
} from "../../protocol/wire-values.ts";
import { keptApproval } from "../approval.ts";
import { keptTransaction } from "../approval-transaction.ts";
import { permit2Address } from "../permit2-domain.ts";
import { type ChannelConfig, configWords, depositNonce, type Voucher, type VoucherClaim } from "./channel.ts";
import { batchSettlementAddress } from "./contracts.ts";

/*
 * Reads the requests of scheme "batch-settlement" as payments. Fields that other payments do not have are JSON in `payload`.
 */

/** The method names: two kinds of deposit, vouchers (which are only verified), and the three actions of shops. */
export const channelMethods = {
  deposit: "batch-settlement-deposit",
  permit2Deposit: "batch-settlement-permit2-deposit",
  voucher: "batch-settlement-voucher",
  claim: "batch-settlement-claim",
  settle: "batch-settlement-settle",
  refund: "batch-settlement-refund",
} as const;

/** A channel as buyers send it, and the voucher with the channel id that they claim. */
export type ChannelPayload = { config: ChannelConfig; voucher: Voucher & { channelId: Hex } };

/** A voucher for a purchase, or for a refund request. */
export type VoucherPayload = ChannelPayload & { isRefund: boolean };

/** A deposit: with EIP-3009 the salt of its nonce, with Permit2 the permit's fields, which must match the rest. */
export type DepositPayload = ChannelPayload & {
  salt?: Hex;
  permit?: { from: Address; token: Address; amount: bigint; spender: Address; channelId: Hex };
};

/** A row that was left out of a claim, and why. */
export type RejectedClaim = { channelId: Hex; why: string };

/** Set once claims are planned: for each row its channel, and the additional amount that it claims. */
type PlannedClaims = { ids?: readonly Hex[]; gains?: readonly bigint[] };

/** A claim; `signature` is by the authorizer of all its rows, and empty if the facilitator signs. */
export type ClaimPayload = PlannedClaims & {
  claims: readonly VoucherClaim[];
  signature: Hex;
  rejected: readonly RejectedClaim[];
};

/** A refund, with the claims that come before it. `refunds` is the amount that it pays back, once that is known. */
export type RefundPayload = ChannelPayload &
  PlannedClaims & {
    refunds?: bigint;
    amount: bigint;
    refundNonce: bigint;
    claims: readonly VoucherClaim[];
    signature: Hex;
    claimSignature: Hex;
  };

/** The maximum number of rows in a claim. Such a transaction stays far below the limits of blocks and nodes. */
export const mostClaims = 100;

export function kindOf(payload: unknown): unknown {
  return propertyOf(payload, "type");
}

/** Returns true for an action of a shop, whose own fields do not say how much it moves. */
export function isShopAction({ method }: Pick<SignedPayment, "method">): boolean {
  const { claim, settle, refund } = channelMethods;
  return [claim, settle, refund].some((one) => one === method);
}

/** A deposit's authorization in the given field, which distinguishes the kinds of deposit. */
export function authorizationOf(payload: unknown, member: string): unknown {
  return propertyOf(propertyOf(propertyOf(payload, "deposit"), "authorization"), member);
}

/** The payer named in a payload; not validated. */
export function payerOf(payload: unknown): unknown {
  return propertyOf(propertyOf(payload, "channelConfig"), "payer");
}

const empty: Hex = "0x";
const none: readonly unknown[] = [];

/** Reads a decimal `uint128`. */
function readUint128(part: Part, name: string): bigint {
  const value = readUint256(part, name);
  if (value < 2n ** 128n) return value;
  part.onMalformed(`${part.path}.${name}`, "is too large for a uint128: must be below 2^128");
  return 0n;
}

function readConfig(part: Part): ChannelConfig {
  return {
    payer: readWireAddress(part, "payer"),
    payerAuthorizer: readWireAddress(part, "payerAuthorizer"),
    receiver: readWireAddress(part, "receiver"),
    receiverAuthorizer: readWireAddress(part, "receiverAuthorizer"),
    token: readWireAddress(part, "token"),
    withdrawDelay: readSeconds(part, "withdrawDelay"),
    salt: readBytes32(part, "salt"),
  };
}

function readChannel(payload: Part): ChannelPayload {
  const voucher = readInner(payload, "voucher");
  return {
    config: readConfig(readInner(payload, "channelConfig")),
    voucher: {
      channelId: lower(readBytes32(voucher, "channelId")),
      maxClaimableAmount: readUint128(voucher, "maxClaimableAmount"),
      signature: readSignature(voucher, "signature"),
    },
  };
}

function readClaims(payload: Part): readonly VoucherClaim[] {
  const { claims } = payload.members;
  const path = `${payload.path}.claims`;
  const isList = Array.isArray(claims) && claims.length <= mostClaims;
  if (!isList) payload.onMalformed(path, `must be a list of at most ${mostClaims} claims`);
  return (isList ? claims : none).map((claim: unknown, index): VoucherClaim => {
    const row = readPart(claim, `${path}[${index}]`, payload.onMalformed);
    const voucher = readInner(row, "voucher");
    return {
      channel: readConfig(readInner(voucher, "channel")),
      maxClaimableAmount: readUint128(voucher, "maxClaimableAmount"),
      signature: readSignature(row, "signature"),
      totalClaimed: readUint128(row, "totalClaimed"),
    };
  });
}

const lower = (hex: Hex): Hex => `0x${hex.slice(2).toLowerCase()}`;

/** Reads an EIP-3009 deposit. Both of its time bounds are exclusive. */
export function readDeposit(payload: Part): SignedPayment {
  const channel = readChannel(payload);
  const deposit = readInner(payload, "deposit");
  const limit = readUint128(deposit, "amount");
  const signed = readInner(readInner(deposit, "authorization"), "erc3009Authorization");
  const [validAfter, validBefore] = [readUint256(signed, "validAfter"), readUint256(signed, "validBefore")];
  const salt = readBytes32(signed, "salt");
  const { payer, receiver, token } = channel.config;
  return {
    method: channelMethods.deposit,
    payer,
    payTo: receiver,
    asset: token,
    limit,
    window: { first: validAfter + 1n, last: validBefore - 1n },
    nonce: depositNonce(channel.voucher.channelId, salt),
    nonceSpace: token,
    signature: readSignature(signed, "signature"),
    payload: write({ ...channel, salt }),
  };
}

/** Reads a Permit2 deposit and the approval that came with it. It is valid at once, until its deadline (inclusive). */
export function readPermit2Deposit(payload: Part, _asset: Address, extensions: unknown): SignedPayment {
  const channel = readChannel(payload);
  const deposit = readInner(payload, "deposit");
  const limit = readUint128(deposit, "amount");
  const signed = readInner(readInner(deposit, "authorization"), "permit2Authorization");
  const permitted = readInner(signed, "permitted");
  const permit = {
    from: readWireAddress(signed, "from"),
    token: readWireAddress(permitted, "token"),
    amount: readUint256(permitted, "amount"),
    spender: readWireAddress(signed, "spender"),
    channelId: lower(readBytes32(readInner(signed, "witness"), "channelId")),
  };
  const { payer, receiver, token } = channel.config;
  return {
    method: channelMethods.permit2Deposit,
    payer,
    payTo: receiver,
    asset: token,
    limit,
    nonce: `0x${uintWord(readUint256(signed, "nonce"))}`,
    nonceSpace: permit2Address,
    window: { first: 0n, last: readUint256(signed, "deadline") },
    signature: readSignature(signed, "signature"),
    payload: write({
      ...channel,
      permit,
      approval: keptApproval(extensions),
      approvalTransaction: keptTransaction(extensions),
    }),
  };
}

/** Writes `paymentPayload.payload` for a deposit, as public clients do. */
export function writeDeposit(payment: SignedPayment): object {
  const { config, voucher, salt, permit } = depositOf(payment);
  const { signature, window, nonce } = payment;
  const times = { validAfter: `${window.first - 1n}`, validBefore: `${window.last + 1n}` };
  const authorization =
    permit === undefined
      ? { erc3009Authorization: { ...times, salt, signature } }
      : {
          permit2Authorization: {
            from: permit.from,
            permitted: { token: permit.token, amount: `${permit.amount}` },
            spender: permit.spender,
            nonce: `${BigInt(nonce)}`,
            deadline: `${window.last}`,
            witness: { channelId: permit.channelId },
            signature,
          },
        };
  return {
    type: "deposit",
    channelConfig: config,
    voucher: { ...voucher, maxClaimableAmount: `${voucher.maxClaimableAmount}` },
    deposit: { amount: `${payment.limit}`, authorization },
  };
}

/** Builds a payment that is not a deposit: its nonce is a hash of its content, and it moves none of the payer's tokens. */
function action(
  method: (typeof channelMethods)[keyof typeof channelMethods],
  { payer, payTo, asset }: Pick<SignedPayment, "payer" | "payTo" | "asset">,
  { signature, content, payload }: { signature: Hex; content: string; payload: unknown },
): SignedPayment {
  return {
    method,
    payer,
    payTo,
    asset,
    limit: 0n,
    window: { first: 0n, last: 0n },
    nonce: keccak256(`${keccak256Text(method)}${content}`),
    nonceSpace: batchSettlementAddress,
    signature,
    payload: write(payload),
  };
}

/** Reads a voucher, or a buyer's refund request. */
export function readVoucher(payload: Part): SignedPayment {
  const kind = payload.members.type;
  if (kind !== "voucher" && kind !== "refund") {
    payload.onMalformed(
      `${payload.path}.type`,
      'must be "deposit", "voucher", "refund", "claim" or "settle"',
    );
  }
  const channel = readChannel(payload);
  const { payer, receiver: payTo, token: asset } = channel.config;
  const { channelId, maxClaimableAmount, signature } = channel.voucher;
  const content = `${channelId.slice(2)}${uintWord(maxClaimableAmount)}`;
  const voucher: VoucherPayload = { ...channel, isRefund: kind === "refund" };
  return action(channelMethods.voucher, { payer, payTo, asset }, { signature, content, payload: voucher });
}

/** Reads a claim. Its payer is the shop, because no buyer's tokens move. */
export function readClaim(payload: Part, asset: Address): SignedPayment {
  const claims = readClaims(payload);
  const [first] = claims;
  if (first === undefined && Array.isArray(payload.members.claims)) {
    payload.onMalformed(`${payload.path}.claims`, "must have at least one claim");
  }
  const receiver = first?.channel.receiver ?? asset;
  const signature = optional(payload, "claimAuthorizerSignature", readSignature) ?? empty;
  const claim: ClaimPayload = { claims, signature, rejected: [] };
  return action(
    channelMethods.claim,
    { payer: receiver, payTo: receiver, asset },
    { signature, content: claims.map(claimContent).join(""), payload: claim },
  );
}

function claimContent({ channel, maxClaimableAmount, signature, totalClaimed }: VoucherClaim): string {
  return `${configWords(channel)}${uintWord(maxClaimableAmount)}${uintWord(totalClaimed)}${byteWords(signature)}`;
}

/** Reads a request to pay out what was claimed for a receiver. */
export function readSettle(payload: Part): SignedPayment {
  const receiver = readWireAddress(payload, "receiver");
  const asset = readWireAddress(payload, "token");
  const terms = { payer: receiver, payTo: receiver, asset };
  return action(channelMethods.settle, terms, { signature: empty, content: addressWord(asset), payload: {} });
}

/** Reads a shop's refund. */
export function readRefund(payload: Part): SignedPayment {
  const channel = readChannel(payload);
  const amount = readUint128(payload, "amount");
  const refundNonce = readUint256(payload, "refundNonce");
  const signature = optional(payload, "refundAuthorizerSignature", readSignature) ?? empty;
  const claimSignature = optional(payload, "claimAuthorizerSignature", readSignature) ?? empty;
  const claims = readClaims(payload);
  const refund: RefundPayload = {
    ...channel,
    amount,
    refundNonce,
    claims,
    signature,
    claimSignature,
  };
  const { payer, receiver: payTo, token: asset } = channel.config;
  const terms = `${channel.voucher.channelId.slice(2)}${uintWord(refundNonce)}${uintWord(amount)}`;
  const content = `${terms}${claims.map(claimContent).join("")}`;
  return action(channelMethods.refund, { payer, payTo, asset }, { signature, content, payload: refund });
}

/** Writes JSON with bigints as strings such as "12n"; no other string in a payload looks like that. */
function write(payload: unknown): string {
  return JSON.stringify(payload, (_key, part: unknown) => (typeof part === "bigint" ? `${part}n` : part));
}

/** The same action with another payload. */
export function withPayload(payment: SignedPayment, payload: unknown): SignedPayment {
  return { ...payment, payload: write(payload) };
}

/** The fields of a payment that reading its payload needs. */
type Written = Pick<SignedPayment, "method" | "payload">;

const known = new WeakMap<Written, unknown>();

/** Parses the payload of a payment, as written by {@link write}. */
function payloadOf(payment: Written): unknown {
  const { payload } = payment;
  if (payload === null) throw new Error(`a payment by ${payment.method} has no payload`);
  const read =
    known.get(payment) ??
    JSON.parse(payload, (_key, part: unknown) =>
      typeof part === "string" && /^\d+n$/.test(part) ? BigInt(part.slice(0, -1)) : part,
    );
  if (!isRecord(read)) throw new Error(`the payload of a payment by ${payment.method} is no object`);
  known.set(payment, read);
  return read;
}

export const channelOf = (payment: SignedPayment) => payloadOf(payment) as ChannelPayload;
export const voucherOf = (payment: SignedPayment) => payloadOf(payment) as VoucherPayload;
export const depositOf = (payment: SignedPayment) => payloadOf(payment) as DepositPayload;

/** The voucher in a buyer's payment (a deposit, a purchase or a refund request); otherwise undefined. */
export function voucherIn(payment: SignedPayment): ChannelPayload["voucher"] | undefined {
  const { deposit, permit2Deposit, voucher } = channelMethods;
  const isOfBuyer = [deposit, permit2Deposit, voucher].some((method) => method === payment.method);
  return isOfBuyer ? channelOf(payment).voucher : undefined;
}

export const claimOf = (payment: Written) => payloadOf(payment) as ClaimPayload;
/** The amount owed to a receiver, once it has been looked up. */
export const payoutOf = (payment: Written) => payloadOf(payment) as { owed: bigint };
export const refundOf = (payment: Written) => payloadOf(payment) as RefundPayload;
