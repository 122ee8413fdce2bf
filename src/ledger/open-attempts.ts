import type { Kysely, Transaction } from "kysely";
import type { Address } from "../protocol/hex.ts";
import { inSnapshot } from "./database/transactions.ts";
import type { Ledger } from "./ledger.ts";
import { lowerCase, toAttempt, toSettlement } from "./rows.ts";
import type { AttemptKind } from "./settlement.ts";
import type { LedgerTables, SettlementsTable } from "./tables.ts";

/** Makes {@link Ledger.openAttempts} and `Recoveries.openForwards`. */
export function createOpenAttempts(db: Kysely<LedgerTables>): Pick<Ledger, "openAttempts" | "openForwards"> {
  const read =
    (kinds: readonly AttemptKind[], findSettlements: typeof settlementsOfOperator): Ledger["openAttempts"] =>
    (chainId, account) =>
      inSnapshot(db, async (snapshot) => {
        const open = await snapshot
          .selectFrom("attempts")
          .selectAll()
          .where("chain_id", "=", chainId)
          .where("operator", "=", lowerCase(account))
          .where("state", "=", "open")
          .where("kind", "in", kinds)
          .orderBy("tx_nonce")
          .orderBy("created_at")
          .execute();
        if (open.length === 0) return [];
        const txNonces = [...new Set(open.map(({ tx_nonce }) => tx_nonce))];
        const rows = await findSettlements(snapshot, { chainId, account, txNonces });
        const settlements = Map.groupBy(rows, ({ sent_with }) => sent_with);
        return open.map((row) => ({
          attempt: toAttempt(row),
          settlements: (settlements.get(row.tx_nonce) ?? []).map(toSettlement),
        }));
      });
  return {
    openAttempts: read(["settle", "noop"], settlementsOfOperator),
    openForwards: read(["forward", "noop"], settlementsOfRecoverer),
  };
}

type Transactions = { chainId: number; account: Address; txNonces: readonly number[] };

function settlementsOfOperator(
  snapshot: Transaction<LedgerTables>,
  { chainId, account, txNonces }: Transactions,
): Promise<(SettlementsTable & { sent_with: number | null })[]> {
  return snapshot
    .selectFrom("settlements")
    .selectAll()
    .select("tx_nonce as sent_with")
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(account))
    .where("tx_nonce", "in", txNonces)
    .execute();
}

function settlementsOfRecoverer(
  snapshot: Transaction<LedgerTables>,
  { chainId, account, txNonces }: Transactions,
): Promise<(SettlementsTable & { sent_with: number | null })[]> {
  return snapshot
    .selectFrom("settlements")
    .innerJoin("recoveries", "recoveries.id", "settlements.id")
    .selectAll("settlements")
    .select("recoveries.tx_nonce as sent_with")
    .where("recoveries.chain_id", "=", chainId)
    .where("recoveries.recoverer", "=", lowerCase(account))
    .where("recoveries.state", "=", "sent")
    .where("recoveries.tx_nonce", "in", txNonces)
    .execute();
}
