import { type Kysely, sql, type Transaction } from "kysely";
import type { Hex } from "../protocol/hex.ts";
import { dayMs } from "../protocol/moments.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { inSnapshot } from "./database/transactions.ts";
import type { Outcomes } from "./ledger.ts";
import { type GasSpendingTable, type LedgerTables, toSafeInteger } from "./rows.ts";

/*
 * The cost of settling, per organization, network and day (UTC), including gifts to payers. Stored in gwei, rounded
 * up, as integers that the database can add.
 */

const gwei = 1_000_000_000n;

/** Converts wei to whole gwei for the table, always rounded up to the next one. */
export const toGwei = (wei: bigint) => toSafeInteger(wei / gwei) + 1;

/** The day of the table that contains a time. */
export const dayOf = (time: number) => Math.floor(time / dayMs);

/** Implements {@link Outcomes.gasSpending}. */
export function createGasSpending(db: Kysely<LedgerTables>, now: () => number): Outcomes["gasSpending"] {
  return (organizationId, network) =>
    inSnapshot(db, async (snapshot) => {
      const spending = await snapshot
        .selectFrom("gas_spending")
        .select(["gwei", "gwei_with_code"])
        .where("organization_id", "=", organizationId)
        .where("network", "=", network)
        .where("day", "=", dayOf(now()))
        .executeTakeFirst();
      const unfinished = await snapshot
        .selectFrom("settlements")
        .select(({ fn }) => [
          fn.countAll<number>().as("all"),
          // SQL's COUNT of a column skips nulls.
          fn.count<number>("payer_code").as("withCode"),
        ])
        .where("organization_id", "=", organizationId)
        .where("network", "=", network)
        // A literal, because a bound parameter would not match the partial index.
        .where("state", "=", sql.lit("submitted" as const))
        .executeTakeFirstOrThrow();
      const withCode = Number(unfinished.withCode);
      const spentWithCode = BigInt(spending?.gwei_with_code ?? 0) * gwei;
      return {
        spent: { withCode: spentWithCode, plain: BigInt(spending?.gwei ?? 0) * gwei - spentWithCode },
        unfinished: { withCode, plain: Number(unfinished.all) - withCode },
      };
    });
}

/**
 * The weight of a payment within a transaction's gas. Code at a payer's address can use all the gas that the contract
 * gives to a pull, whatever its signature looks like, and every byte of a signature costs gas.
 */
function weigh({ payer_code, signature }: ChargedSettlement): number {
  return payer_code === null ? 60_000 : 300_000 + 20 * signature.length;
}

type ChargedSettlement = {
  organization_id: string;
  network: NetworkName;
  payer_code: Hex | null;
  signature: Hex;
};

/** The cost of a transaction, in wei, and the settlements it concluded. */
export type Charge = {
  gasCost: bigint;
  settlements: readonly ChargedSettlement[];
};

/**
 * Returns the statement that charges transactions to the organizations whose settlements they concluded, in proportion
 * to the gas each may have used; an empty list if there is nothing to charge.
 */
export function chargingGas(
  transaction: Transaction<LedgerTables>,
  charges: readonly Charge[],
  time: number,
) {
  const spent = new Map<string, Omit<GasSpendingTable, "day">>();
  for (const { gasCost, settlements } of charges) {
    const total = settlements.reduce((sum, one) => sum + weigh(one), 0);
    for (const one of settlements) {
      const { organization_id, network, payer_code } = one;
      const key = `${organization_id} ${network}`;
      const share = toGwei((gasCost * BigInt(weigh(one))) / BigInt(total));
      const before = spent.get(key) ?? { organization_id, network, gwei: 0, gwei_with_code: 0 };
      spent.set(key, {
        ...before,
        gwei: before.gwei + share,
        gwei_with_code: before.gwei_with_code + (payer_code === null ? 0 : share),
      });
    }
  }
  if (spent.size === 0) return [];
  // Always in the same order, so that two transactions cannot deadlock.
  const inOrder = [...spent].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  return [addingToSpending(transaction, inOrder, time)];
}

/** Returns the statement that adds to the spending on the day of `time`. */
export function addingToSpending(
  transaction: Transaction<LedgerTables>,
  rows: readonly Omit<GasSpendingTable, "day">[],
  time: number,
) {
  const day = dayOf(time);
  return transaction
    .insertInto("gas_spending")
    .values(rows.map((row) => ({ ...row, day })))
    .onConflict((conflict) =>
      conflict.columns(["organization_id", "network", "day"]).doUpdateSet({
        gwei: (row) => row("gas_spending.gwei", "+", row.ref("excluded.gwei")),
        gwei_with_code: (row) => row("gas_spending.gwei_with_code", "+", row.ref("excluded.gwei_with_code")),
      }),
    );
}
