import type { SignedMember } from "../method.ts";
import type { Authorization } from "./authorization.ts";
import { authorizationJson } from "./payload.ts";

const kinds: Readonly<Record<keyof Authorization, SignedMember["kind"]>> = {
  from: "other",
  to: "recipient",
  value: "amount",
  validAfter: "time",
  validBefore: "time",
  nonce: "other",
};

/** The members of an authorization by the names that EIP-3009 gives them, in the order in which they are signed. */
export function describeAuthorization(authorization: Authorization): readonly SignedMember[] {
  const written = authorizationJson(authorization);
  return (Object.keys(kinds) as (keyof Authorization)[]).map((label) => ({
    label,
    value: written[label],
    kind: kinds[label],
  }));
}
