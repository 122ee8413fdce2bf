import { z } from "zod";
import { IdempotencyMismatchError, UndeterminedError } from "../errors.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Hex } from "../protocol/hex.ts";
import { bytes32 } from "../protocol/primitives.ts";
import { problemDetails } from "../protocol/problems.ts";
import { invalidReasons } from "../protocol/reasons.ts";
import { type Situation, situations } from "../protocol/situations.ts";
import { poll } from "../relayer/poll.ts";
import type { Waiting } from "./claim-payment.ts";
import { repeated, type SettleResult } from "./settle.ts";

/** What an `Idempotency-Key` binds: the key, and a hash of the whole body. */
export type IdempotencyKey = { key: string; bodyHash: string };

const storedAnswer = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("invalid"),
    invalid: z.object({
      reason: z.enum(invalidReasons),
      fault: z.enum(["payload", "requirements"]),
      message: z.string(),
      situation: z.enum(Object.keys(situations) as [Situation, ...Situation[]]).optional(),
      retryAfterSeconds: z.union([z.number(), z.string()]).optional(),
    }),
  }),
  z.object({ kind: z.literal("success"), transaction: bytes32 }),
]);

/** Between two looks at a key whose first request is still under way. */
const pollMs = 100;

/**
 * Runs a settle once per key: a repeat with the same body gets the same final answer, waiting for it if need be. An end
 * without a final answer frees the key.
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
    const entry = await ledger.beginIdempotent(organizationId, key, bodyHash);
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
    const answer = storedAnswer.parse(JSON.parse(entry.answer));
    if (answer.kind === "invalid") return { ...answer, final: true };
    const settlement = await ledger.find(settlementId);
    // Its block has vanished since, and what becomes of it now is another answer.
    if (settlement?.state === "submitted")
      return { kind: "pending", transaction: settlement.transactionHash };
    if (settlement?.state === "failed") return settle();
    // A success that never arrived is handed over now, and so is spent for requests without the key.
    const undelivered = await settle().catch(() => undefined);
    return undelivered?.kind === "success" ? undelivered : { ...answer, delivery: repeated };
  }

  let result: SettleResult | undefined;
  let isStored = true;
  try {
    result = await settle();
    if (result.kind === "pending" || (result.kind === "invalid" && !result.final)) {
      // What may come out differently is found out again, instead of being repeated for a day.
      await ledger.abandonIdempotent(organizationId, key);
    } else {
      const answer: z.infer<typeof storedAnswer> =
        result.kind === "success"
          ? { kind: result.kind, transaction: result.transaction }
          : { kind: result.kind, invalid: result.invalid };
      const right = result.kind === "success" ? result.delivery.right : undefined;
      isStored = await ledger.answerIdempotent(organizationId, key, JSON.stringify(answer), right);
    }
    if (isStored || result.kind !== "success") return result;
    await result.delivery.lost();
    await ledger.abandonIdempotent(organizationId, key);
  } catch (error) {
    // Otherwise the right to the answer would be held, and renewed, for as long as the process lives.
    if (result?.kind === "success") await result.delivery.lost().catch(() => {});
    await ledger.abandonIdempotent(organizationId, key);
    throw error;
  }
  // This process stood still with the success, and another request answered meanwhile: with this key, or without it.
  return settleIdempotently(ledger, organizationId, { key, bodyHash }, settlementId, waiting, settle);
}
