import type { Kysely, Transaction } from "kysely";
import type { Address } from "../protocol/hex.ts";
import { KitError } from "../util/errors.ts";
import { allAtOnce, inTransaction, withCommit } from "./database/transactions.ts";
import { decideClaims } from "./decide-claims.ts";
import type { ClaimRequest, Claims } from "./ledger.ts";
import { lockingAccounts } from "./locks.ts";
import { bindIdentifiers } from "./payment-identifiers.ts";
import { fromAttempt, fromSettlement, lowerCase, toAttempt, toSafeInteger } from "./rows.ts";
import type { Attempt } from "./settlement.ts";
import type { LedgerTables } from "./tables.ts";
import { givingBack, takenTxNonce, taking } from "./tx-nonces.ts";

/** Makes {@link Claims.claim}. */
export function createClaim(db: Kysely<LedgerTables>, now: () => number): Claims["claim"] {
  return async (operator, requests, sign) => {
    if (requests.length === 0) return { outcomes: [], attempt: null };
    return inTransaction(db, async (transaction) => {
      const { chainId } = operator;
      if (requests.some((request) => request.chainId !== chainId)) {
        throw new KitError(`Only payments on chain ${chainId} can be claimed with its operator`);
      }
      // The operator's row first, since it makes other instances wait that claim with it, then the accounts; what is read
      // after them is what those have left who had them before.
      const [taken, unmined, , known, reserved] = await allAtOnce(transaction, [
        taking(transaction, operator),
        countingUnmined(transaction, operator),
        lockingAccounts(transaction, requests, now()),
        findingKnown(transaction, requests),
        readingReserved(transaction, chainId, requests),
      ]);
      const txNonce = takenTxNonce(operator, taken);
      if (Number(unmined[0]?.unmined) >= operator.maxUnmined) {
        await withCommit(transaction, [givingBack(transaction, operator, txNonce)]);
        return { outcomes: requests.map(() => "no_room"), attempt: null };
      }
      const outcomes = decideClaims(
        requests,
        new Set(known.map(({ id }) => id)),
        reserved.map(({ asset, payer, amount, block_number }) => ({
          asset,
          payer,
          amount: BigInt(amount),
          minedIn: block_number === null ? null : BigInt(block_number),
        })),
      );
      for (const index of await bindIdentifiers(transaction, { requests, outcomes, time: now() })) {
        outcomes[index] = "identifier_reused";
      }
      const claimable = requests.filter((_, index) => outcomes[index] === "claimed");
      if (claimable.length === 0) {
        await withCommit(transaction, [givingBack(transaction, operator, txNonce)]);
        return { outcomes, attempt: null };
      }
      const { hash, raw, maxFeePerGas, maxPriorityFeePerGas } = await sign(txNonce, claimable);
      const createdAt = now();
      const attempt: Attempt = {
        hash,
        chainId,
        operator: operator.address,
        txNonce,
        kind: "settle",
        raw,
        maxFeePerGas,
        maxPriorityFeePerGas,
        createdAt,
      };
      const row = fromAttempt(attempt);
      const settlements = claimable.map((request) =>
        fromSettlement({
          ...request,
          state: "submitted",
          operator: operator.address,
          txNonce,
          transactionHash: hash,
          blockNumber: null,
          blockHash: null,
          failure: null,
          claimedBlock: request.balanceBlock,
          claimedAt: createdAt,
          concludedAt: null,
          deliveredAt: null,
        }),
      );
      await withCommit(transaction, [
        transaction.insertInto("attempts").values(row),
        transaction.insertInto("settlements").values(settlements),
      ]);
      return { outcomes, attempt: toAttempt(row) };
    });
  };
}

function findingKnown(transaction: Transaction<LedgerTables>, requests: readonly ClaimRequest[]) {
  const ids = requests.map(({ id }) => lowerCase(id));
  return transaction.selectFrom("settlements").select("id").where("id", "in", ids);
}

/** What counts against the payers' balances beside the requests themselves. */
function readingReserved(
  transaction: Transaction<LedgerTables>,
  chainId: number,
  requests: readonly ClaimRequest[],
) {
  const oldestBalance = Math.min(...requests.map(({ balanceBlock }) => toSafeInteger(balanceBlock)));
  // Pairs of (asset, payer) that were not asked about may come along; they are never looked at.
  const ofPayers = transaction
    .selectFrom("settlements")
    .select(["asset", "payer", "amount", "block_number"])
    .where("chain_id", "=", chainId)
    .where("asset", "in", distinct(requests.map(({ asset }) => lowerCase(asset))))
    .where("payer", "in", distinct(requests.map(({ payer }) => lowerCase(payer))));
  const paidSince = (state: "settled" | "recovered") =>
    ofPayers.where("state", "=", state).where("block_number", ">", oldestBalance);
  // One state at a time: for a list of them Postgres may read all that the payer has ever paid.
  return ofPayers
    .where("state", "=", "submitted")
    .unionAll(paidSince("settled"))
    .unionAll(paidSince("recovered"));
}

/**
 * How many txNonces of an operator no block is known to hold. Where fewer are open than there may be, those: what a block
 * holds that is not final is counted then too, which changes nothing and spares a look at every payment under way.
 */
function countingUnmined(
  transaction: Transaction<LedgerTables>,
  { chainId, address, maxUnmined }: { chainId: number; address: Address; maxUnmined: number },
) {
  const open = transaction
    .selectFrom("attempts")
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(address))
    .where("state", "=", "open");
  const txNonces = open.select((attempts) =>
    attempts.fn.count<number | bigint | string>("tx_nonce").distinct().as("unmined"),
  );
  return txNonces.where(({ or, eb, not, exists, selectFrom }) =>
    or([
      eb(txNonces, "<", maxUnmined),
      not(
        exists(
          selectFrom("settlements")
            .select("id")
            .whereRef("settlements.chain_id", "=", "attempts.chain_id")
            .whereRef("settlements.operator", "=", "attempts.operator")
            .whereRef("settlements.tx_nonce", "=", "attempts.tx_nonce")
            .where("settlements.block_number", "is not", null),
        ),
      ),
    ]),
  );
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}
