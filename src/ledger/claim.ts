import type { Kysely, Transaction } from "kysely";
import { inTransaction } from "../database/transaction.ts";
import { KitError } from "../errors.ts";
import type { Address } from "../protocol/hex.ts";
import { decideClaims, type Reserved } from "./decide-claims.ts";
import type { ClaimRequest, Ledger } from "./ledger.ts";
import { lockAccounts } from "./locks.ts";
import { fromAttempt, fromSettlement, lowerCase, toAttempt, toSafeInteger } from "./rows.ts";
import type { Attempt } from "./settlement.ts";
import type { LedgerTables } from "./tables.ts";
import { giveBackTxNonce, takeTxNonce } from "./tx-nonces.ts";

/** Makes {@link Ledger.claim}. */
export function createClaim(db: Kysely<LedgerTables>, now: () => number): Ledger["claim"] {
  return async (operator, requests, sign) => {
    if (requests.length === 0) return { outcomes: [], attempt: null };
    return inTransaction(db, async (transaction) => {
      const { chainId } = operator;
      if (requests.some((request) => request.chainId !== chainId)) {
        throw new KitError(`Only payments on chain ${chainId} can be claimed with its operator`);
      }
      // First of all, since it makes other instances wait that claim with this operator.
      const txNonce = await takeTxNonce(transaction, operator);
      if ((await countUnmined(transaction, operator)) >= operator.maxUnmined) {
        await giveBackTxNonce(transaction, operator, txNonce);
        return { outcomes: requests.map(() => "no_room"), attempt: null };
      }
      await lockAccounts(transaction, requests, now());
      const outcomes = decideClaims(
        requests,
        await findTaken(transaction, requests),
        await readReserved(transaction, chainId, requests),
      );
      const claimable = requests.filter((_, index) => outcomes[index] === "claimed");
      if (claimable.length === 0) {
        await giveBackTxNonce(transaction, operator, txNonce);
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
      await transaction.insertInto("attempts").values(row).execute();
      await transaction
        .insertInto("settlements")
        .values(
          claimable.map((request) =>
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
          ),
        )
        .execute();
      return { outcomes, attempt: toAttempt(row) };
    });
  };
}

async function findTaken(
  transaction: Transaction<LedgerTables>,
  requests: readonly ClaimRequest[],
): Promise<Set<string>> {
  const ids = requests.map(({ id }) => lowerCase(id));
  const rows = await transaction.selectFrom("settlements").select("id").where("id", "in", ids).execute();
  return new Set(rows.map(({ id }) => id));
}

async function readReserved(
  transaction: Transaction<LedgerTables>,
  chainId: number,
  requests: readonly ClaimRequest[],
): Promise<Reserved[]> {
  const oldestBalance = Math.min(...requests.map(({ balanceBlock }) => toSafeInteger(balanceBlock)));
  // Pairs of (asset, payer) that were not asked about may come along; they are never looked at.
  const ofPayers = transaction
    .selectFrom("settlements")
    .select(["asset", "payer", "value", "block_number"])
    .where("chain_id", "=", chainId)
    .where("asset", "in", distinct(requests.map(({ asset }) => lowerCase(asset))))
    .where("payer", "in", distinct(requests.map(({ payer }) => lowerCase(payer))));
  const rows = await ofPayers
    .where("state", "=", "submitted")
    .unionAll(
      ofPayers.where("state", "in", ["settled", "recovered"]).where("block_number", ">", oldestBalance),
    )
    .execute();
  return rows.map(({ asset, payer, value, block_number }) => ({
    asset,
    payer,
    value: BigInt(value),
    minedIn: block_number === null ? null : BigInt(block_number),
  }));
}

/** How many txNonces of an operator no block is known to hold. */
async function countUnmined(
  transaction: Transaction<LedgerTables>,
  { chainId, address }: { chainId: number; address: Address },
): Promise<number> {
  const { unmined } = await transaction
    .selectFrom("attempts")
    .select((attempts) => attempts.fn.count<number | bigint | string>("tx_nonce").distinct().as("unmined"))
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(address))
    .where("state", "=", "open")
    .where(({ not, exists, selectFrom }) =>
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
    )
    .executeTakeFirstOrThrow();
  return Number(unmined);
}

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}
