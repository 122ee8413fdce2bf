import { type ExpressionBuilder, type Kysely, sql, type Transaction } from "kysely";
import type { Address, Hex } from "../protocol/hex.ts";
import { KitError } from "../util/errors.ts";
import { inTransaction, repeatable } from "./database/transactions.ts";
import type { ClaimRequest, Claims } from "./ledger.ts";
import { type AttemptsTable, attemptStates, type LedgerTables, lowerCase } from "./rows.ts";

/*
 * The txNonces of operators and recoverers: which is next, how one is taken, given back and closed. The locks below say
 * what has to be locked first.
 */

/** An account that sends transactions, on one chain. */
export type Sender = { chainId: number; address: Address };

/** Selects the settlements that a transaction makes, by its txNonce. */
export function settlementsOf({ selectFrom }: ExpressionBuilder<LedgerTables, "attempts">) {
  return selectFrom("settlements")
    .select("settlements.id")
    .whereRef("settlements.chain_id", "=", "attempts.chain_id")
    .whereRef("settlements.operator", "=", "attempts.operator")
    .whereRef("settlements.tx_nonce", "=", "attempts.tx_nonce");
}

/** Sets the first txNonce of an account. One that is known is moved up where `movesUp` says so, and never back. */
export async function introduceSender(
  db: Kysely<LedgerTables>,
  { chainId, address }: Sender,
  txNonce: number,
  { movesUp }: { movesUp: boolean },
): Promise<void> {
  const row = { chain_id: chainId, operator: lowerCase(address), next_tx_nonce: txNonce };
  await repeatable(() =>
    db
      .insertInto("operator_nonces")
      .values(row)
      .onConflict((conflict) => {
        const known = conflict.columns(["chain_id", "operator"]);
        if (!movesUp) return known.doNothing();
        return known
          .doUpdateSet({ next_tx_nonce: txNonce })
          .where("operator_nonces.next_tx_nonce", "<", txNonce);
      })
      .execute(),
  );
}

/** The txNonce after the last one that was taken; null for an account that was not introduced. */
export async function readNextTxNonce(
  db: Kysely<LedgerTables>,
  { chainId, address }: Sender,
): Promise<number | null> {
  const row = await db
    .selectFrom("operator_nonces")
    .select("next_tx_nonce")
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(address))
    .executeTakeFirst();
  return row?.next_tx_nonce ?? null;
}

/** Takes an account's next txNonce. No other transaction gets it, unless this one is undone or gives it back. */
export async function takeTxNonce(transaction: Transaction<LedgerTables>, sender: Sender): Promise<number> {
  return takenTxNonce(sender, await taking(transaction, sender).execute());
}

/** The statement of {@link takeTxNonce}, whose result {@link takenTxNonce} reads. */
export function taking(transaction: Transaction<LedgerTables>, { chainId, address }: Sender) {
  return transaction
    .updateTable("operator_nonces")
    .set((current) => ({ next_tx_nonce: current("next_tx_nonce", "+", 1) }))
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(address))
    .returning("next_tx_nonce");
}

export function takenTxNonce(
  { chainId, address }: Sender,
  [row]: readonly { next_tx_nonce: number }[],
): number {
  if (row === undefined) throw new KitError(`The operator ${address} was not introduced on chain ${chainId}`);
  return row.next_tx_nonce - 1;
}

/** Undoes {@link takeTxNonce} within the same transaction: outside of it, the txNonce was never taken. */
export async function giveBackTxNonce(
  transaction: Transaction<LedgerTables>,
  sender: Sender,
  txNonce: number,
): Promise<void> {
  await givingBack(transaction, sender, txNonce).execute();
}

/** The statement of {@link giveBackTxNonce}. */
export function givingBack(
  transaction: Transaction<LedgerTables>,
  { chainId, address }: Sender,
  txNonce: number,
) {
  return transaction
    .updateTable("operator_nonces")
    .set({ next_tx_nonce: txNonce })
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(address));
}

/** The attempts of some txNonces, in one order: two transactions that lock them must not wait for each other. */
export function attemptsOf(
  transaction: Transaction<LedgerTables>,
  { chainId, operator }: { chainId: number; operator: Address },
  txNonces: readonly number[],
) {
  return (
    transaction
      .selectFrom("attempts")
      .where("chain_id", "=", chainId)
      .where("operator", "=", lowerCase(operator))
      // In every state: named, because the index has the state before the txNonce, and all that the operator ever sent would be read.
      .where("state", "in", attemptStates)
      .where("tx_nonce", "in", txNonces)
      .orderBy("tx_nonce")
      .orderBy("hash")
  );
}

/** None of a txNonce's attempts can be mined any more, except the one that was; null where it was none of them. */
export async function closeTxNonce(
  transaction: Transaction<LedgerTables>,
  closed: { chainId: number; operator: Address; txNonce: number },
  mined: Hex | null,
): Promise<void> {
  await closing(transaction, closed, mined).execute();
}

/** The statement of {@link closeTxNonce}. */
export function closing(
  transaction: Transaction<LedgerTables>,
  { chainId, operator, txNonce }: { chainId: number; operator: Address; txNonce: number },
  mined: Hex | null,
) {
  return transaction
    .updateTable("attempts")
    .set({
      state:
        mined === null
          ? "superseded"
          : sql<
              AttemptsTable["state"]
            >`case when hash = ${lowerCase(mined)} then 'mined' else 'superseded' end`,
    })
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(operator))
    .where("tx_nonce", "=", txNonce)
    .where("state", "=", "open");
}

/*
 * Rows that stand for a decision. A transaction that decides locks the row first; from then on every other one that
 * does the same waits until this one has ended, and then sees what it has done. Locked in this order: first the
 * operator, then the accounts, or the attempts of a txNonce.
 */

/** Locks all that is known of an operator's txNonces: which are open, and their settlements. */
export async function lockOperator(
  transaction: Transaction<LedgerTables>,
  operator: { chainId: number; operator: Address },
): Promise<void> {
  await lockingOperator(transaction, operator).execute();
}

/** The statement of {@link lockOperator}. */
export function lockingOperator(
  transaction: Transaction<LedgerTables>,
  operator: { chainId: number; operator: Address },
) {
  return selectingOperator(transaction, operator).forUpdate();
}

/**
 * The statements that lock txNonces of an operator which are to be concluded. Other txNonces may be concluded, and new
 * ones taken, meanwhile: an UPDATE that leaves the key alone, as the one which takes a txNonce, goes well with a KEY
 * SHARE. What locks the operator waits.
 */
export function lockingTxNonces(
  transaction: Transaction<LedgerTables>,
  operator: { chainId: number; operator: Address },
  txNonces: readonly number[],
) {
  return [
    selectingOperator(transaction, operator).forKeyShare(),
    attemptsOf(transaction, operator, txNonces).select("hash").forUpdate(),
  ];
}

function selectingOperator(
  transaction: Transaction<LedgerTables>,
  { chainId, operator }: { chainId: number; operator: Address },
) {
  return transaction
    .selectFrom("operator_nonces")
    .select("operator")
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(operator));
}

/** The statement that locks what the balances of the requests' payers back, which other operators may claim from too. */
export function lockingAccounts(
  transaction: Transaction<LedgerTables>,
  requests: readonly ClaimRequest[],
  time: number,
) {
  const accounts = new Map(
    requests.map(({ chainId, asset, payer }) => {
      const row = { chain_id: chainId, asset: lowerCase(asset), payer: lowerCase(payer), claimed_at: time };
      return [`${row.asset} ${row.payer}`, row] as const;
    }),
  );
  // In one order everywhere: two transactions must not wait for each other.
  const inOrder = [...accounts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  return transaction
    .insertInto("accounts")
    .values(inOrder)
    .onConflict((conflict) =>
      conflict
        .columns(["chain_id", "asset", "payer"])
        .doUpdateSet({ claimed_at: (row) => row.ref("excluded.claimed_at") }),
    );
}

/** Makes the part of {@link Claims} that people change by hand. */
export function createOperatorChanges(
  db: Kysely<LedgerTables>,
  now: () => number,
): Pick<Claims, "acceptTxNonce" | "operatorChanges"> {
  const ofOperator = (chainId: number, operator: Address) =>
    db
      .selectFrom("operator_changes")
      .where("chain_id", "=", chainId)
      .where("operator", "=", lowerCase(operator));

  return {
    acceptTxNonce: ({ chainId, operator, txNonce }, actor) =>
      inTransaction(db, async (transaction) => {
        await lockOperator(transaction, { chainId, operator });
        const row = await transaction
          .selectFrom("operator_nonces")
          .select("next_tx_nonce")
          .where("chain_id", "=", chainId)
          .where("operator", "=", lowerCase(operator))
          .executeTakeFirst();
        if (row === undefined || row.next_tx_nonce >= txNonce) return false;
        await transaction
          .updateTable("operator_nonces")
          .set({ next_tx_nonce: txNonce })
          .where("chain_id", "=", chainId)
          .where("operator", "=", lowerCase(operator))
          .execute();
        await transaction
          .insertInto("operator_changes")
          .values({
            chain_id: chainId,
            operator: lowerCase(operator),
            at: now(),
            actor,
            from_tx_nonce: row.next_tx_nonce,
            to_tx_nonce: txNonce,
          })
          .execute();
        return true;
      }),

    async operatorChanges(chainId, operator) {
      const rows = await ofOperator(chainId, operator)
        .select(["at", "actor", "from_tx_nonce", "to_tx_nonce"])
        .orderBy("to_tx_nonce")
        .execute();
      return rows.map(({ at, actor, from_tx_nonce, to_tx_nonce }) => ({
        at,
        actor,
        from: from_tx_nonce,
        to: to_tx_nonce,
      }));
    },
  };
}
