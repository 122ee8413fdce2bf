import { type ExpressionBuilder, type Kysely, sql, type Transaction } from "kysely";
import type { Address, Hex } from "../protocol/hex.ts";
import { KitError } from "../util/errors.ts";
import { inTransaction, repeatable } from "./database/transactions.ts";
import type { ClaimRequest, Claims } from "./ledger.ts";
import { type AttemptsTable, attemptStates, type LedgerTables, lowerCase } from "./rows.ts";

/*
 * The txNonces of operators and recoverers: reading the next one, taking it, giving it back and closing it. The
 * comment on locks below says what must be locked first.
 */

/** An account that sends transactions on one chain. */
export type Sender = { chainId: number; address: Address };

/** Selects the settlements carried by an attempt, which share its txNonce. */
export function settlementsOf({ selectFrom }: ExpressionBuilder<LedgerTables, "attempts">) {
  return selectFrom("settlements")
    .select("settlements.id")
    .whereRef("settlements.chain_id", "=", "attempts.chain_id")
    .whereRef("settlements.operator", "=", "attempts.operator")
    .whereRef("settlements.tx_nonce", "=", "attempts.tx_nonce");
}

/** Sets the first txNonce of an account. A known account is only moved up, and only if `movesUp` is set. */
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

/** Returns the txNonce after the last one taken; null for an unknown account. */
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

/** Takes an account's next txNonce. No other transaction gets it unless this one rolls back or gives it back. */
export async function takeTxNonce(transaction: Transaction<LedgerTables>, sender: Sender): Promise<number> {
  return takenTxNonce(sender, await taking(transaction, sender).execute());
}

/** Returns the statement of {@link takeTxNonce}; {@link takenTxNonce} reads its result. */
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

/** Undoes {@link takeTxNonce} within the same transaction, as if the txNonce had never been taken. */
export async function giveBackTxNonce(
  transaction: Transaction<LedgerTables>,
  sender: Sender,
  txNonce: number,
): Promise<void> {
  await givingBack(transaction, sender, txNonce).execute();
}

/** Returns the statement of {@link giveBackTxNonce}. */
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

/** Selects the attempts of some txNonces, in a fixed order so that two transactions that lock them cannot deadlock. */
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
      // Lists every state, because the index has the state before the txNonce. Without it, all attempts of the
      // operator would be read.
      .where("state", "in", attemptStates)
      .where("tx_nonce", "in", txNonces)
      .orderBy("tx_nonce")
      .orderBy("hash")
  );
}

/** Closes a txNonce: `mined` is its mined attempt, or null if none was mined; all others can no longer be. */
export async function closeTxNonce(
  transaction: Transaction<LedgerTables>,
  closed: { chainId: number; operator: Address; txNonce: number },
  mined: Hex | null,
): Promise<void> {
  await closing(transaction, closed, mined).execute();
}

/** Returns the statement of {@link closeTxNonce}. */
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
 * Locks: some rows guard a decision. A transaction locks such a row before it decides; others that lock it wait until
 * that transaction ends, and then see what it did. The order of locking: first the operator, then the accounts, or the
 * attempts of a txNonce.
 */

/** Locks everything about an operator's txNonces: which ones are open, and their settlements. */
export async function lockOperator(
  transaction: Transaction<LedgerTables>,
  operator: { chainId: number; operator: Address },
): Promise<void> {
  await lockingOperator(transaction, operator).execute();
}

/** Returns the statement of {@link lockOperator}. */
export function lockingOperator(
  transaction: Transaction<LedgerTables>,
  operator: { chainId: number; operator: Address },
) {
  return selectingOperator(transaction, operator).forUpdate();
}

/**
 * Returns the statements that lock some of an operator's txNonces to conclude them. Meanwhile other txNonces can be
 * concluded and new ones taken: KEY SHARE does not block an UPDATE that leaves the key alone, such as the one that
 * takes a txNonce. A transaction that locks the operator waits.
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

/** Returns the statement that locks the accounts of the requests' payers, which other operators may claim from too. */
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
  // Always in the same order, so that two transactions cannot deadlock.
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

/** Implements the manual changes among {@link Claims}. */
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
