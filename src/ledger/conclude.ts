import type { Kysely, Transaction } from "kysely";
import type { Hex } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { KitError, UndeterminedError } from "../util/errors.ts";
import { together } from "../util/together.ts";
import { allAtOnce, inTransaction, withCommit } from "./database/transactions.ts";
import { type Charge, chargingGas } from "./gas-spending.ts";
import type { Conclusion, Outcomes } from "./ledger.ts";
import { lockingTxNonces } from "./locks.ts";
import { lowerCase, toSafeInteger } from "./rows.ts";
import type { MinedTransaction, SettlementState } from "./settlement.ts";
import type { LedgerTables } from "./tables.ts";
import { closing } from "./tx-nonces.ts";

/** A transaction that is to be recorded, and what it decided. */
type Concluding = { mined: MinedTransaction; conclusions: readonly Conclusion[] };

/** A settlement of it, as it is before. */
type Concluded = {
  id: Hex;
  tx_nonce: number;
  state: SettlementState;
  organization_id: string;
  network: NetworkName;
  signature: Hex;
  payer_code: Hex | null;
  concluded_at: number | null;
};

/**
 * Makes {@link Outcomes.conclude}: transactions of one block are mostly concluded together, those of each operator by
 * themselves. An operator whose row another transaction holds keeps no other operator's payments waiting.
 */
export function createConclude(db: Kysely<LedgerTables>, now: () => number): Outcomes["conclude"] {
  const byOperator = new Map<string, (item: Concluding) => Promise<unknown>>();

  function concludeTogether(item: Concluding): Promise<unknown> {
    const key = `${item.mined.chainId} ${lowerCase(item.mined.operator)}`;
    let ofOperator = byOperator.get(key);
    if (ofOperator === undefined) {
      ofOperator = together(concludeAll, { most: 16, keyOf: ({ mined }) => String(mined.txNonce) });
      byOperator.set(key, ofOperator);
    }
    return ofOperator(item);
  }

  /** Gives what went wrong with each: one that cannot be recorded keeps the others from nothing. */
  async function concludeAll(items: readonly Concluding[]): Promise<unknown[]> {
    try {
      await inTransaction(db, (transaction) => conclude(transaction, items, now()));
      return items.map(() => undefined);
    } catch (error) {
      if (items.length === 1 || error instanceof UndeterminedError) return items.map(() => error);
      const singly: unknown[] = [];
      for (const item of items) singly.push(...(await concludeAll([item])));
      return singly;
    }
  }

  return async (mined, conclusions) => {
    const error = await concludeTogether({ mined, conclusions });
    if (error !== undefined) throw error;
  };
}

/** Concludes transactions of one operator. */
async function conclude(
  transaction: Transaction<LedgerTables>,
  items: readonly Concluding[],
  time: number,
): Promise<void> {
  const [first] = items;
  if (first === undefined) return;
  const { chainId, operator } = first.mined;
  const txNonces = items.map(({ mined }) => mined.txNonce);
  const [batches] = await allAtOnce(
    transaction,
    [
      transaction
        .selectFrom("settlements")
        .select([
          "id",
          "tx_nonce",
          "state",
          "organization_id",
          "network",
          "signature",
          "payer_code",
          "concluded_at",
        ])
        .where("chain_id", "=", chainId)
        .where("operator", "=", lowerCase(operator))
        .where("tx_nonce", "in", txNonces),
    ],
    lockingTxNonces(transaction, first.mined, txNonces),
  );
  const charges: Charge[] = [];
  const statements = items.flatMap((item) => {
    const { mined } = item;
    const inBatch = batches.filter(({ tx_nonce }) => tx_nonce === mined.txNonce);
    const endings = sortByEnding(item, inBatch);
    if (mined.gasCost !== undefined) {
      // What was concluded before, in a block that vanished, was charged then.
      const settlements = inBatch.filter(
        ({ state, concluded_at }) => state === "submitted" && concluded_at === null,
      );
      charges.push({ gasCost: mined.gasCost, settlements });
    }
    const updates = [...endings].map(([failure, ids]) =>
      transaction
        .updateTable("settlements")
        .set({
          state: failure === null ? "settled" : "failed",
          failure,
          transaction_hash: lowerCase(mined.hash),
          block_number: toSafeInteger(mined.blockNumber),
          block_hash: lowerCase(mined.blockHash),
          concluded_at: time,
        })
        .where("id", "in", ids),
    );
    return [...updates, closing(transaction, mined, mined.hash)];
  });
  await withCommit(transaction, [...chargingGas(transaction, charges, time), ...statements]);
}

/** Ids by how they ended: `null` for settled, else the failure. Those already concluded stay as they are. */
function sortByEnding(
  { mined: { txNonce, operator, hash }, conclusions }: Concluding,
  inBatch: readonly Concluded[],
): Map<string | null, Hex[]> {
  const states = new Map(inBatch.map(({ id, state }) => [id, state]));
  const endings = new Map<string | null, Hex[]>();
  for (const conclusion of conclusions) {
    const id = lowerCase(conclusion.id);
    const state = states.get(id);
    if (state === undefined) {
      throw new KitError(
        `The settlement ${id} is not in the transaction with txNonce ${txNonce} of ${operator}`,
      );
    }
    states.delete(id);
    if (state !== "submitted") continue;
    const failure = conclusion.state === "failed" ? conclusion.failure : null;
    const ids = endings.get(failure);
    if (ids === undefined) endings.set(failure, [id]);
    else ids.push(id);
  }
  for (const [id, state] of states) {
    // A closed txNonce is not watched any more: what is left out here would stay unfinished for ever.
    if (state === "submitted") throw new KitError(`The transaction ${hash} also decides settlement ${id}`);
  }
  return endings;
}
