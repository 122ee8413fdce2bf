import { z } from "zod";
import type { Ledger } from "../../ledger/ledger.ts";
import type { BoundIdentifier } from "../../ledger/settlement.ts";
import { type Hex, keccak256Text } from "../../protocol/hex.ts";
import { identifierBinding } from "../../protocol/payment-identifier.ts";
import { bytes32, uint256String } from "../../protocol/primitives.ts";
import { problemDetails } from "../../protocol/problems.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { IdempotencyMismatchError, IdentifierReusedError, UndeterminedError } from "../../util/errors.ts";
import { poll } from "../../util/waiting.ts";
import type { Waiting } from "./context.ts";
import type { SettleablePayment } from "./payment.ts";
import { alreadyDelivered, type SettleResult } from "./settle-result.ts";

/** An `Idempotency-Key` and the hash of the whole body it came with. */
export type IdempotencyKey = { key: string; bodyHash: string };

/** A success as stored once it was delivered. */
const storedSuccess = z.object({
  kind: z.literal("success"),
  transaction: z.union([bytes32, z.literal("")]),
  amount: uint256String.optional(),
});

/** Between two checks of a key whose first request is still in progress. */
const pollMs = 100;

/**
 * Runs a settle once per key: a repeat with the same body waits for the first request and gets the same success. If
 * the first request ends without a success, the key is free again.
 *
 * @throws IdempotencyMismatchError when the key came with another body before.
 */
export async function settleIdempotently(
  ledger: Ledger,
  organizationId: string,
  { key, bodyHash }: IdempotencyKey,
  settlementId: Hex,
  waiting: Waiting,
  settle: () => Promise<SettleResult>,
): Promise<SettleResult> {
  const begin = async () => {
    const entry = await ledger.leases.beginIdempotent(organizationId, key, bodyHash);
    return entry.status === "running" ? undefined : entry;
  };
  const entry = await poll(begin, {
    every: pollMs,
    until: () => waiting.now() >= waiting.deadline,
    signal: waiting.signal,
  });
  if (entry === undefined) {
    throw new UndeterminedError("The first request with this Idempotency-Key is still under way; try again");
  }
  if (entry.status === "other_body") throw new IdempotencyMismatchError(problemDetails.idempotency);
  if (entry.status === "answered") {
    const answer = storedSuccess.parse(JSON.parse(entry.answer));
    const settlement = await ledger.claims.find(settlementId);
    // A reorg has removed its block since, so the stored answer no longer holds.
    if (settlement?.state === "submitted")
      return { kind: "pending", transaction: settlement.transactionHash };
    if (settlement?.state === "failed") return settle();
    const { amount, ...success } = answer;
    return { ...success, ...(amount !== undefined && { amount }), delivery: alreadyDelivered };
  }

  const abandon = () => ledger.leases.abandonIdempotent(organizationId, key);
  const keep = (answer: z.input<typeof storedSuccess>) => ({
    organizationId,
    key,
    answer: JSON.stringify(answer),
  });
  try {
    const result = await settle();
    switch (result.kind) {
      case "success": {
        const { transaction, amount, delivery } = result;
        const taken = amount === undefined ? {} : { amount: `${amount}` };
        // Stored only once it is delivered: if it is lost, another request may get it under another key.
        const delivered = () => delivery.delivered(keep({ kind: "success", transaction, ...taken }));
        const lost = async () => void (await Promise.all([abandon(), delivery.lost()]));
        return { ...result, delivery: { ...delivery, delivered, lost } };
      }
      // Refusals are not stored: nothing was taken, and key holders could fill the database with them.
      case "invalid":
      case "pending":
        await abandon();
        return result;
    }
  } catch (error) {
    await abandon();
    throw error;
  }
}

/** Binds a payment's identifier to the signed message, which holds all terms, and the resource. */
export function bindingOf(
  { identifier }: PaymentRequest,
  { digest }: SettleablePayment,
): BoundIdentifier | undefined {
  if (identifier === undefined) return undefined;
  return { id: identifier.id, fingerprint: keccak256Text(identifierBinding(digest, identifier)) };
}

/**
 * Returns true if an earlier claim has bound this identifier to this payment.
 *
 * @throws IdentifierReusedError when it is bound to another payment of the organization.
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
