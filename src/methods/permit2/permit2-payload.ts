import { permit2Reasons } from "../../protocol/catalogue.ts";
import { type Address, type Hex, isAddress, sameAddress, uintWord } from "../../protocol/hex.ts";
import type { PaymentWords, SignedPayment } from "../../protocol/signed-payment.ts";
import {
  type Part,
  propertyOf,
  readInner,
  readSignature,
  readUint256,
  readWireAddress,
} from "../../protocol/wire-values.ts";
import { keptApproval } from "../approval.ts";
import { keptTransaction } from "../approval-transaction.ts";
import type { PaymentTimes } from "../payment-times.ts";
import { exactProxyAddress, type Permit, permit2Address, uptoProxyAddress } from "./permit.ts";

/** The method names of Permit2 payments. */
export const exactPermit2 = "exact-permit2";
export const uptoPermit2 = "upto-permit2";

/** The payload field that holds the permit and distinguishes it from other payloads. */
export const permitMember = "permit2Authorization";

/** Returns true for a Permit2 payload, well formed or not. Decided by this field alone, as in public facilitators. */
export function isPermit2(payload: unknown): boolean {
  return propertyOf(payload, permitMember) !== undefined;
}

/** The payer named in a payload; not validated. */
export function payerOf(payload: unknown): unknown {
  return propertyOf(propertyOf(payload, permitMember), "from");
}

/**
 * Reads `paymentPayload.payload` of a Permit2 payment. Numbers must be canonical decimal strings: with two spellings of one
 * nonce, code that compares strings would see two payments.
 *
 * @param hasFacilitator true for scheme "upto", whose witness names the account that submits it
 */
export function readPermitPayload(
  payload: Part,
  { hasFacilitator }: { hasFacilitator: boolean },
  extensions?: unknown,
): SignedPayment {
  const signature = readSignature(payload, "signature");
  const permit = readInner(payload, permitMember);
  const from = readWireAddress(permit, "from");
  const permitted = readInner(permit, "permitted");
  const token = readWireAddress(permitted, "token");
  const amount = readUint256(permitted, "amount");
  const spender = readWireAddress(permit, "spender");
  const nonce = readUint256(permit, "nonce");
  const deadline = readUint256(permit, "deadline");
  const witness = readInner(permit, "witness");
  const to = readWireAddress(witness, "to");
  const facilitator = hasFacilitator ? readWireAddress(witness, "facilitator") : undefined;
  const validAfter = readUint256(witness, "validAfter");
  return permitPayment({
    permit: { from, token, amount, spender, nonce, deadline, to, facilitator, validAfter },
    signature,
    approval: keptApproval(extensions),
    approvalTransaction: keptTransaction(extensions),
  });
}

/**
 * Converts a signed permit to a payment. Its nonce belongs to Permit2, whatever the token.
 *
 * @param approval the approval that came with it: see {@link keptApproval} and {@link keptTransaction}
 */
export function permitPayment({
  permit,
  signature,
  approval,
  approvalTransaction,
}: {
  permit: Permit;
  signature: Hex;
  approval?: unknown;
  approvalTransaction?: unknown;
}): SignedPayment {
  const { from, token, amount, spender, nonce, deadline, to, facilitator, validAfter } = permit;
  const usual = facilitator === undefined ? exactProxyAddress : uptoProxyAddress;
  const rest = {
    ...(facilitator !== undefined && { facilitator }),
    ...(!sameAddress(spender, usual) && { spender }),
    ...(approval !== undefined && { approval }),
    ...(approvalTransaction !== undefined && { approvalTransaction }),
  };
  return {
    method: facilitator === undefined ? exactPermit2 : uptoPermit2,
    payer: from,
    payTo: to,
    asset: token,
    limit: amount,
    window: { first: validAfter, last: deadline },
    nonce: `0x${uintWord(nonce)}`,
    nonceSpace: permit2Address,
    signature,
    payload: Object.keys(rest).length === 0 ? null : JSON.stringify(rest),
  };
}

export function permitOf(payment: SignedPayment): Permit {
  const { payer, payTo, asset, limit, window, nonce, method, payload } = payment;
  const isUpto = method === uptoPermit2;
  const rest: unknown = payload === null ? {} : JSON.parse(payload);
  const spender = addressIn(rest, "spender") ?? (isUpto ? uptoProxyAddress : exactProxyAddress);
  const facilitator = addressIn(rest, "facilitator");
  if (isUpto && facilitator === undefined) throw new Error("a payment of scheme upto names no facilitator");
  return {
    from: payer,
    token: asset,
    amount: limit,
    spender,
    nonce: BigInt(nonce),
    deadline: window.last,
    to: payTo,
    ...(facilitator !== undefined && { facilitator }),
    validAfter: window.first,
  };
}

function addressIn(rest: unknown, name: string): Address | undefined {
  const value = propertyOf(rest, name);
  return isAddress(value) ? value : undefined;
}

/** Writes `paymentPayload.payload` for a signed permit, as public clients do. */
export function writePermitPayload(permit: Permit, signature: Hex): object {
  const { from, token, amount, spender, nonce, deadline, to, facilitator, validAfter } = permit;
  return {
    signature,
    [permitMember]: {
      from,
      permitted: { token, amount: `${amount}` },
      spender,
      nonce: `${nonce}`,
      deadline: `${deadline}`,
      witness: { to, ...(facilitator !== undefined && { facilitator }), validAfter: `${validAfter}` },
    },
  };
}

/** An example of `paymentPayload.payload` for an offer. */
export function permitPayloadFor({ scheme, asset }: { scheme?: unknown; asset?: unknown }): object {
  const account: Address = `0x${"01".repeat(20)}`;
  const isUpto = scheme === "upto";
  const permit: Permit = {
    from: account,
    token: isAddress(asset) ? asset : account,
    amount: 1n,
    nonce: 1n,
    deadline: 1n,
    spender: isUpto ? uptoProxyAddress : exactProxyAddress,
    to: account,
    validAfter: 0n,
    ...(isUpto && { facilitator: account }),
  };
  return writePermitPayload(permit, "0x");
}

/** A change to a request that invalidates the signature of its permit. */
export const permitChange = {
  "paymentPayload.payload.permit2Authorization.witness.validAfter": "1",
} as const;

/** Renames the given times to the fields of a permit. */
export function permitTimes<Times extends Partial<PaymentTimes>>({
  validAfter,
  validBefore,
}: Times): Times extends PaymentTimes ? Pick<Permit, "validAfter" | "deadline"> : Partial<Permit>;
export function permitTimes({ validAfter, validBefore }: Partial<PaymentTimes>): Partial<Permit> {
  return {
    ...(validAfter !== undefined && { validAfter }),
    ...(validBefore !== undefined && { deadline: validBefore }),
  };
}

/** The names of a permit's fields in messages. Both time bounds are inclusive. */
export const permit2Words: PaymentWords = {
  payer: `${permitMember}.from`,
  nonce: `${permitMember}.nonce`,
  payTo: "permit2Authorization.witness.to",
  limit: "permit2Authorization.permitted.amount",
  asset: "permit2Authorization.permitted.token",
  start: "witness.validAfter",
  end: "deadline",
  startsSaid: "from",
  endsSaid: "until",
  includesBounds: true,
  reasons: permit2Reasons,
  reference: "permit2",
  judge: "Permit2",
  domain: () => 'domain "Permit2"',
};
