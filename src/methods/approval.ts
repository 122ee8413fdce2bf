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
 * An approval of Permit2 that comes with a payment: what the payer signs for the token (EIP-2612), so that no gas of his own is
 * needed. Source: the extension `eip2612GasSponsoring` of x402.
 */

/** The extension by which it comes, in `paymentPayload.extensions`. */
export const approvalExtension: GasSponsoring = "eip2612GasSponsoring";

/** Where its members are, as messages name it. */
const at = `extensions.${approvalExtension}.info`;

/** An approval as it came. The amount is in the token's smallest unit, the deadline in unix seconds, included. */
export type Approval = {
  from: Address;
  asset: Address;
  spender: Address;
  amount: bigint;
  /** The payer's next one at the token: each is used once, in turn. */
  nonce: bigint;
  deadline: bigint;
  /** r, s and v. */
  signature: Hex;
};

/** The members that are kept; all others are dropped. */
const members = ["from", "asset", "spender", "amount", "nonce", "deadline", "signature", "version"] as const;

/** Its members as they are kept with the payment: those that came, or what is read as malformed again. */
export function keptApproval(extensions: unknown): unknown {
  const info = propertyOf(propertyOf(extensions, approvalExtension), "info");
  // Clients that sign none pass on what the shop has declared.
  // One that is incomplete is none, as public facilitators have it: what is lacking then is the approval.
  if (members.some((name) => !propertyOf(info, name))) return undefined;
  if (parseApproval(info) === undefined) return "malformed";
  return Object.fromEntries(members.map((name) => [name, propertyOf(info, name)]));
}

/** The approval that came with a payment. */
export function approvalOf({ payload }: Pick<SignedPayment, "payload">): Approval | "malformed" | undefined {
  const approval = payload === null ? undefined : propertyOf(JSON.parse(payload), "approval");
  return approval === undefined ? undefined : (parseApproval(approval) ?? "malformed");
}

/** Until when the approval that came with a payment can be used, in unix seconds. */
export function approvalDeadline(payment: Pick<SignedPayment, "payload">): bigint | undefined {
  const approval = approvalOf(payment);
  return typeof approval === "object" ? approval.deadline : undefined;
}

/** The same payment without what came with it to approve Permit2: but for one of the two, where that is named. */
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

/** Both extensions allow versions of several parts. */
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

/** A number of the chain, or a placeholder where it is not known beforehand. */
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

  /** `token` is what is known of the asset, by which amounts are shown. */
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

/** Refuses a payment by Permit2 that may not take enough. */
export function refuseAllowance(
  { payerAllowance, nextApproval }: StateFacts,
  { payment, needed, token }: JudgedPayment,
): Invalid | undefined {
  if (payerAllowance === undefined || payerAllowance >= needed) return undefined;
  const approval = approvalOf({ payload: payment.payload ?? null });
  if (typeof approval !== "object") {
    return approvalRefusals.allowanceTooSmall(payment, token, { allowance: payerAllowance, needed });
  }
  // A token that was not asked may take the approval.
  return nextApproval === undefined ? undefined : approvalRefusals.refusedByToken(approval, nextApproval);
}

/** The problem with an approval, whatever the chain's state is; in the order of public facilitators. */
export function checkApproval(
  approval: Approval | "malformed",
  { payer, asset, limit }: Pick<SignedPayment, "payer" | "asset" | "limit">,
): Invalid | undefined {
  if (approval === "malformed") return approvalRefusals.malformed();
  if (!sameAddress(approval.from, payer)) return approvalRefusals.ofOtherPayer(approval, payer);
  if (!sameAddress(approval.asset, asset)) return approvalRefusals.ofOtherToken(approval, asset);
  if (!sameAddress(approval.spender, permit2Address)) return approvalRefusals.forOtherSpender(approval);
  // The proxies of x402 take no other one.
  return approval.amount === limit ? undefined : approvalRefusals.amountDiffers(approval, limit);
}

/** Why an approval comes too late to be used. Where the permit itself expires no later, that is what is said of it. */
export function checkDeadline(
  { deadline }: Approval,
  { window }: Pick<SignedPayment, "window">,
  now: bigint,
): Invalid | undefined {
  const isTooLate = deadline < now + expiryMarginSeconds && deadline < window.last;
  return isTooLate ? approvalRefusals.expired(deadline, now) : undefined;
}

/** The words of an approval as contracts take it: value and deadline, r and s, v. */
export function approvalWords({ amount, deadline, signature }: Approval): [string, string, string] {
  const terms = `${uintWord(amount)}${uintWord(deadline)}`;
  return [terms, signature.slice(2, 130), signature.slice(130).padStart(64, "0")];
}

const permitTypehash = keccak256Text(
  "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)",
);

/** The EIP-712 digest of an approval under the domain of its token (EIP-2612). */
export function approvalDigest(
  { from, spender, amount, nonce, deadline }: Omit<Approval, "asset" | "signature">,
  asset: Pick<Asset, "name" | "version" | "address">,
  chainId: number,
): Hex {
  const numbers = [amount, nonce, deadline].map(uintWord).join("");
  const hash = keccak256(`${permitTypehash}${addressWord(from)}${addressWord(spender)}${numbers}`);
  return digestUnder(domainSeparator(asset, chainId), hash);
}
