import type { SignedMember } from "../method.ts";
import type { Permit } from "./permit.ts";

/** The members of a permit by the names that Permit2 and the proxies of x402 give them, in the order in which they are signed. */
export function describePermit(permit: Permit): readonly SignedMember[] {
  const { from, token, amount, spender, nonce, deadline, to, facilitator, validAfter } = permit;
  return [
    { label: "from", value: from, kind: "other" },
    { label: "permitted.token", value: token, kind: "other" },
    { label: "permitted.amount", value: `${amount}`, kind: "amount" },
    { label: "spender", value: spender, kind: "other" },
    { label: "nonce", value: `${nonce}`, kind: "other" },
    { label: "deadline", value: `${deadline}`, kind: "time" },
    { label: "witness.to", value: to, kind: "recipient" },
    ...(facilitator === undefined
      ? []
      : [{ label: "witness.facilitator", value: facilitator, kind: "other" as const }]),
    { label: "witness.validAfter", value: `${validAfter}`, kind: "time" },
  ];
}
