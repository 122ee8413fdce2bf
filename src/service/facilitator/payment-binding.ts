import type { Ledger } from "../../ledger/ledger.ts";
import type { BoundIdentifier, Settlement } from "../../ledger/settlement.ts";
import { keccak256Text } from "../../protocol/hex.ts";
import { identifierBinding } from "../../protocol/payment-identifier.ts";
import { problemDetails } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { IdentifierReusedError } from "../../util/errors.ts";
import type { SettleablePayment } from "./intake.ts";

/** What a payment's identifier is bound to: what was signed, which says everything of the terms, and what it is for. */
export function bindingOf(
  { identifier }: PaymentRequest,
  { digest }: SettleablePayment,
): BoundIdentifier | undefined {
  if (identifier === undefined) return undefined;
  return { id: identifier.id, fingerprint: keccak256Text(identifierBinding(digest, identifier)) };
}

/**
 * Whether this payment has its identifier already, by an earlier claim.
 *
 * @throws IdentifierReusedError when another payment of the organization has.
 */
export async function isBound(
  ledger: Ledger,
  organizationId: string,
  identifier: BoundIdentifier | undefined,
): Promise<boolean> {
  if (identifier === undefined) return false;
  const fingerprint = await ledger.claims.findIdentifier(organizationId, identifier.id);
  if (fingerprint !== null && fingerprint !== identifier.fingerprint) {
    throw new IdentifierReusedError(problemDetails.identifierReused);
  }
  return fingerprint !== null;
}

/** Whether a settlement has paid, so that its success may be given again to an organization that asks for that. */
export function hasPaid({ state }: Settlement): boolean {
  return state === "settled" || state === "recovered";
}
