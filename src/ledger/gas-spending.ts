import { type Kysely, sql, type Transaction } from "kysely";
import { inSnapshot } from "../database/transaction.ts";
import type { Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { Ledger } from "./ledger.ts";
import { toSafeInteger } from "./rows.ts";
import type { LedgerTables } from "./tables.ts";

/*
 * What settling has cost, per organization, network and day (UTC). Kept in gwei, rounded up, as whole numbers that the
 * database can add.
 */

const dayMs = 24 * 60 * 60 * 1000;
const gwei = 1_000_000_000n;

const dayOf = (time: number) => Math.floor(time / dayMs);

/** Makes {@link Ledger.gasSpending}. */
export function createGasSpending(db: Kysely<LedgerTables>, now: () => number): Ledger["gasSpending"] {
  return (organizationId, network) =>
    inSnapshot(db, async (snapshot) => {
      const spending = await snapshot
        .selectFrom("gas_spending")
        .select("gwei")
        .where("organization_id", "=", organizationId)
        .where("network", "=", network)
        .where("day", "=", dayOf(now()))
        .executeTakeFirst();
      const { unfinished } = await snapshot
        .selectFrom("settlements")
        .select((settlements) => settlements.fn.countAll<number>().as("unfinished"))
        .where("organization_id", "=", organizationId)
        .where("network", "=", network)
        // In the words of the partial index, which a bound parameter would not match.
        .where("state", "=", sql.lit("submitted" as const))
        .executeTakeFirstOrThrow();
      return { spent: BigInt(spending?.gwei ?? 0) * gwei, unfinished };
    });
}

/** A plain signature: 65 bytes in hexadecimal digits. */
const plainSignatureLength = 2 + 2 * 65;

/**
 * What a payment may use of a transaction's gas, against others: code at a payer's address, which longer signatures are
 * for, may burn what the contract gives a pull, and every byte of a signature is paid for.
 */
function weigh(signature: Hex): number {
  if (signature.length <= plainSignatureLength) return 60_000;
  return 300_000 + 20 * signature.length;
}

/** What a transaction has cost, in wei, and the settlements that it concluded. */
export type Charge = {
  gasCost: bigint;
  settlements: readonly { organization_id: string; network: NetworkName; signature: Hex }[];
};

/**
 * The statement that charges transactions to the organizations whose settlements they concluded, by what each of them
 * may have used; none where there is nothing to charge.
 */
export function chargingGas(
  transaction: Transaction<LedgerTables>,
  charges: readonly Charge[],
  time: number,
) {
  const day = dayOf(time);
  const spent = new Map<string, { organization_id: string; network: NetworkName; gwei: number }>();
  for (const { gasCost, settlements } of charges) {
    const total = settlements.reduce((sum, { signature }) => sum + weigh(signature), 0);
    const accounts = Map.groupBy(settlements, (one) => `${one.organization_id} ${one.network}`);
    for (const [key, ofOne] of accounts) {
      const [first] = ofOne;
      if (first === undefined) continue;
      const { organization_id, network } = first;
      const weight = ofOne.reduce((sum, { signature }) => sum + weigh(signature), 0);
      const share = toSafeInteger((gasCost * BigInt(weight)) / BigInt(total) / gwei) + ofOne.length;
      spent.set(key, { organization_id, network, gwei: (spent.get(key)?.gwei ?? 0) + share });
    }
  }
  if (spent.size === 0) return [];
  // In one order everywhere: two transactions must not wait for each other.
  const inOrder = [...spent].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => ({ ...row, day }));
  return [
    transaction
      .insertInto("gas_spending")
      .values(inOrder)
      .onConflict((conflict) =>
        conflict
          .columns(["organization_id", "network", "day"])
          .doUpdateSet({ gwei: (row) => row("gas_spending.gwei", "+", row.ref("excluded.gwei")) }),
      ),
  ];
}
