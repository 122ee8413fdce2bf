import { decodeParameters, decodeRevert, describeRevert, type Revert } from "../../../chain/revert.ts";
import { selector } from "../../../chain/views.ts";
import type { Hex } from "../../../protocol/hex.ts";

/**
 * The errors of Permit2 and of the proxies of x402, which the facilitator contract passes on. Two of them differ in their
 * parameters alone: `InvalidAmount()` is the proxies', `InvalidAmount(uint256)` Permit2's.
 */
const signatures = [
  "InvalidNonce()",
  "SignatureExpired(uint256)",
  "InvalidAmount(uint256)",
  "InvalidSigner()",
  "InvalidSignature()",
  "InvalidSignatureLength()",
  "InvalidContractSignature()",
  "Permit2612AmountMismatch()",
  "InvalidOwner()",
  "InvalidDestination()",
  "PaymentTooEarly()",
  "InvalidAmount()",
  "InvalidPermit2Address()",
  "ReentrancyGuardReentrantCall()",
  "AmountExceedsPermitted()",
  "UnauthorizedFacilitator()",
] as const;

export type Permit2Error = (typeof signatures)[number];

const bySelector = new Map<string, Permit2Error>(signatures.map((one) => [selector(one), one]));

/** The error of Permit2 or a proxy that a revert is; undefined for any other. */
export function permit2ErrorOf(revert: Revert): Permit2Error | undefined {
  if (revert.kind !== "unknown") return undefined;
  const error = bySelector.get(revert.data.slice(0, 10).toLowerCase());
  const parameters = revert.data.length - 10;
  const wanted = error?.includes("uint256") === true ? 64 : 0;
  return parameters === wanted ? error : undefined;
}

/** The name and the argument of such an error, for people. */
export function describePermit2Revert(data: Hex): string {
  const revert = decodeRevert(data);
  const error = permit2ErrorOf(revert);
  if (error === undefined) return describeRevert(revert);
  const [argument] = error.includes("uint256")
    ? (decodeParameters(["uint256"], `0x${data.slice(10)}`) ?? [])
    : [];
  const name = error.slice(0, error.indexOf("("));
  return argument === undefined ? name : `${name} ${argument}`;
}
