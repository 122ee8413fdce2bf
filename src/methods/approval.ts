import { type Invalid, invalid } from "../protocol/catalogue.ts";
import type { GasSponsoring } from "../protocol/checks.ts";
import {
  type Address,
  addressWord,
  type Hex,
  isAddress,
  isBytes,
  keccak256,
  keccak256Text,
  sameAddress,
  uintWord,
} from "../protocol/hex.ts";
import type { Asset } from "../protocol/networks.ts";
import { expiryMarginSeconds } from "../protocol/refusals.ts";
import type { SignedPayment } from "../protocol/signed-payment.ts";
import { formatBoth, unitsOf } from "../protocol/token-units.ts";
import { parseUint256, propertyOf } from "../protocol/wire-values.ts";
import { digestUnder, domainSeparator } from "./eip712.ts";
import type { JudgedPayment, StateFacts } from "./payment-state.ts";
import { permit2Address } from "./permit2-domain.ts";

/*
 * A Permit2 approval that accompanies a payment as a token permit (EIP-2612), so that the payer needs no gas.
 * Source: the x402 extension `eip2612GasSponsoring`.
 */

/** The key of the extension in `paymentPayload.extensions`. */
export const approvalExtension: GasSponsoring = "eip2612GasSponsoring";

/** The path of its fields, for messages. */
const at = `extensions.${approvalExtension}.info`;

/** An approval as received. The amount is in the token's smallest unit, the deadline in unix seconds, inclusive. */
export type Approval = {
  from: Address;
  asset: Address;
  spender: Address;
  amount: bigint;
  /** The payer's next nonce at the token; the token consumes them one by one. */
  nonce: bigint;
  deadline: bigint;
  /** r, s and v. */
  signature: Hex;
};

/** The fields that are stored; all others are dropped. */
const members = ["from", "asset", "spender", "amount", "nonce", "deadline", "signature", "version"] as const;

/** The fields to store with the payment: those received, or a value that parses as malformed again. */
export function keptApproval(extensions: unknown): unknown {
  const info = propertyOf(propertyOf(extensions, approvalExtension), "info");
  // Clients that sign no approval echo the shop's declaration. Public facilitators treat an incomplete approval as
  // missing, so the refusal then is that Permit2 is not approved.
  if (members.some((name) => !propertyOf(info, name))) return undefined;
  if (parseApproval(info) === undefined) return "malformed";
  return Object.fromEntries(members.map((name) => [name, propertyOf(info, name)]));
}

/** The approval that came with a payment, if any. */
export function approvalOf({ payload }: Pick<SignedPayment, "payload">): Approval | "malformed" | undefined {
  const approval = payload === null ? undefined : propertyOf(JSON.parse(payload), "approval");
  return approval === undefined ? undefined : (parseApproval(approval) ?? "malformed");
}

/** The deadline of the approval that came with a payment, in unix seconds; undefined without a valid one. */
export function approvalDeadline(payment: Pick<SignedPayment, "payload">): bigint | undefined {
  const approval = approvalOf(payment);
  return typeof approval === "object" ? approval.deadline : undefined;
}

/** The same payment without its Permit2 approvals, apart from the one in `except`. */
export function withoutApproval(
  payment: SignedPayment,
  except?: "approval" | "approvalTransaction",
): SignedPayment {
  if (payment.payload === null) return payment;
  const { approval, approvalTransaction, ...rest } = JSON.parse(payment.payload);
  if (approval === undefined && approvalTransaction === undefined) return payment;
  const kept = { approval, approvalTransaction };
  const whole = { ...rest, ...(except !== undefined && { [except]: kept[except] }) };
  return { ...payment, payload: Object.keys(whole).length === 0 ? null : JSON.stringify(whole) };
}

/** Returns true for version 1. Both extensions allow dotted versions, such as "1.0". */
export function isFirstVersion(version: unknown): boolean {
  return typeof version === "string" && /^1(\.0)*$/.test(version);
}

function parseApproval(info: unknown): Approval | undefined {
  const member = (name: string) => propertyOf(info, name);
  const number = (name: string) => {
    const text = member(name);
    return typeof text === "string" ? parseUint256(text) : null;
  };
  const [from, asset, spender, signature] = ["from", "asset", "spender", "signature"].map(member);
  const [amount, nonce, deadline] = ["amount", "nonce", "deadline"].map(number);
  if (!isAddress(from) || !isAddress(asset) || !isAddress(spender)) return undefined;
  if (amount == null || nonce == null || deadline == null) return undefined;
  if (!isBytes(signature) || signature.length !== 132) return undefined;
  if (!isFirstVersion(member("version"))) return undefined;
  return { from, asset, spender, amount, nonce, deadline, signature };
}

/** A number from the chain, or a placeholder if it is not known beforehand. */
type Shown = bigint | string;

const differs = (approval: Approval, member: keyof Approval, wanted: string) =>
  `${at}.${member} is ${approval[member]}, but must be ${wanted}`;

export const approvalRefusals = {
  malformed: () =>
    invalid(
      "approval_malformed",
      `${at} needs from, asset and spender (addresses), amount, nonce and deadline (decimal strings), signature (65 bytes) and version "1"`,
    ),
  ofOtherPayer: (approval: Approval, payer: Address) =>
    invalid("approval_of_other_payer", differs(approval, "from", `the payer ${payer}`)),
  ofOtherToken: (approval: Approval, asset: Address) =>
    invalid("approval_of_other_token", differs(approval, "asset", `the token ${asset}`)),
  forOtherSpender: (approval: Approval) =>
    invalid("approval_for_other_spender", differs(approval, "spender", `Permit2, ${permit2Address}`)),
  amountDiffers: (approval: Approval, limit: bigint) =>
    invalid("approval_amount_differs", differs(approval, "amount", `${limit}, what the payment permits`)),
  expired: (deadline: bigint, now: Shown) =>
    invalid(
      "approval_expired",
      `${at}.deadline is ${deadline}, which must be at least ${expiryMarginSeconds} seconds after the chain's time ${now}`,
    ),
  /** `next` is the payer's next nonce at the token. */
  refusedByToken: ({ nonce }: Approval, next: Shown) =>
    invalid(
      "approval_refused",
      nonce === next
        ? `The token refuses the approval in ${at}: it is not signed by the payer under the token's own domain, or the token takes none`
        : `The token refuses the approval in ${at}: its nonce is ${nonce}, and the payer's next one is ${next}`,
      "Sign the approval again",
    ),

  /** `token` holds the known facts about the asset, which amounts are formatted with. */
  allowanceTooSmall: (
    { asset }: Pick<SignedPayment, "asset">,
    token: Asset | undefined,
    { allowance, needed }: { allowance: Shown; needed: bigint },
  ) => {
    const units = token && unitsOf(token);
    return invalid(
      "allowance_too_small",
      `The payer lets Permit2 take ${formatBoth(allowance, units)}; ${formatBoth(needed, units)} is needed`,
      `Let the payer call approve(${permit2Address}, ${needed}) at the token ${asset}, or approve more, then send the same payment again`,
    );
  },
} as const satisfies Record<string, (...facts: never[]) => Invalid>;

/** Refuses a Permit2 payment if the payer's allowance is too small and no usable approval comes with it. */
export function refuseAllowance(
  { payerAllowance, nextApproval }: StateFacts,
  { payment, needed, token }: JudgedPayment,
): Invalid | undefined {
  if (payerAllowance === undefined || payerAllowance >= needed) return undefined;
  const approval = approvalOf({ payload: payment.payload ?? null });
  if (typeof approval !== "object") {
    return approvalRefusals.allowanceTooSmall(payment, token, { allowance: payerAllowance, needed });
  }
  // Without an answer from the token, the approval may still be valid.
  return nextApproval === undefined ? undefined : approvalRefusals.refusedByToken(approval, nextApproval);
}

/** Checks an approval without looking at the chain's state, in the order of public facilitators. */
export function checkApproval(
  approval: Approval | "malformed",
  { payer, asset, limit }: Pick<SignedPayment, "payer" | "asset" | "limit">,
): Invalid | undefined {
  if (approval === "malformed") return approvalRefusals.malformed();
  if (!sameAddress(approval.from, payer)) return approvalRefusals.ofOtherPayer(approval, payer);
  if (!sameAddress(approval.asset, asset)) return approvalRefusals.ofOtherToken(approval, asset);
  if (!sameAddress(approval.spender, permit2Address)) return approvalRefusals.forOtherSpender(approval);
  // The x402 proxies accept no other amount.
  return approval.amount === limit ? undefined : approvalRefusals.amountDiffers(approval, limit);
}

/** Refuses an expired approval, unless the permit itself expires no later: then that is the reason to report. */
export function checkDeadline(
  { deadline }: Approval,
  { window }: Pick<SignedPayment, "window">,
  now: bigint,
): Invalid | undefined {
  const isTooLate = deadline < now + expiryMarginSeconds && deadline < window.last;
  return isTooLate ? approvalRefusals.expired(deadline, now) : undefined;
}

/** The ABI words of an approval in contract calls: value and deadline, r and s, v. */
export function approvalWords({ amount, deadline, signature }: Approval): [string, string, string] {
  const terms = `${uintWord(amount)}${uintWord(deadline)}`;
  return [terms, signature.slice(2, 130), signature.slice(130).padStart(64, "0")];
}

const permitTypehash = keccak256Text(
  "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)",
);

/** The EIP-712 digest of an approval under its token's domain (EIP-2612). */
export function approvalDigest(
  { from, spender, amount, nonce, deadline }: Omit<Approval, "asset" | "signature">,
  asset: Pick<Asset, "name" | "version" | "address">,
  chainId: number,
): Hex {
  const numbers = [amount, nonce, deadline].map(uintWord).join("");
  const hash = keccak256(`${permitTypehash}${addressWord(from)}${addressWord(spender)}${numbers}`);
  return digestUnder(domainSeparator(asset, chainId), hash);
}
