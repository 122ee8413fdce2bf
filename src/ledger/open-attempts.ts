import type { Kysely, Transaction } from "kysely";
import type { Address } from "../protocol/hex.ts";
import { inSnapshot } from "./database/transactions.ts";
import type { Claims } from "./ledger.ts";
import type { Recoveries } from "./recoveries.ts";
import { lowerCase, toAttempt, toSettlement } from "./rows.ts";
import type { AttemptKind } from "./settlement.ts";
import type { LedgerTables, SettlementsTable } from "./tables.ts";

/** Makes {@link Claims.openAttempts}. */
export function createOpenAttempts(db: Kysely<LedgerTables>): Claims["openAttempts"] {
  return (chainId, account) => readOpen(db, { chainId, account }, ["settle", "noop"], settlementsOfOperator);
}

/** Makes {@link Recoveries.openForwards}. */
export function createOpenForwards(db: Kysely<LedgerTables>): Recoveries["openForwards"] {
  return (chainId, account) =>
    readOpen(db, { chainId, account }, ["forward", "noop"], settlementsOfRecoverer);
}

function readOpen(
  db: Kysely<LedgerTables>,
  { chainId, account }: { chainId: number; account: Address },
  kinds: readonly AttemptKind[],
  findSettlements: typeof settlementsOfOperator,
): ReturnType<Claims["openAttempts"]> {
  return inSnapshot(db, async (snapshot) => {
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
