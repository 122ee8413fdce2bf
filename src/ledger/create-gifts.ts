import { type Kysely, sql, type Transaction } from "kysely";
import { inTransaction } from "./database/transactions.ts";
import { addingToSpending, dayOf, toGwei } from "./gas-spending.ts";
import {
  findLimit,
  type Gift,
  type GiftCharge,
  type Gifts,
  type GivenOnDay,
  type Receiver,
} from "./gifts.ts";
import { type GiftsTable, type LedgerTables, lowerCase } from "./rows.ts";
import type { SignedAttempt } from "./settlement.ts";
import { giveBackTxNonce, introduceSender, type Sender, takeTxNonce } from "./tx-nonces.ts";

/** Implements {@link Gifts}. */
export function createGifts(db: Kysely<LedgerTables>, now: () => number): Gifts {
  const find = ({ chainId, asset, payer }: Receiver, on: Kysely<LedgerTables> = db) =>
    on
      .selectFrom("gifts")
      .selectAll()
      .where("chain_id", "=", chainId)
      .where("asset", "=", lowerCase(asset))
      .where("payer", "=", lowerCase(payer))
      .executeTakeFirst();

  async function givenOn(
    { chainId, address }: Sender,
    time: number,
    organizationId?: string,
    on: Kysely<LedgerTables> = db,
  ): Promise<GivenOnDay> {
    // Summed in two parts, gwei and the nine digits below, because SQLite's integers have only 64 bits.
    const gwei = sql<string>`cast(sum(cast(substr('0000000000' || value, 1, length(value) + 1) as bigint)) as text)`;
    const wei = sql<string>`cast(sum(cast(substr('000000000' || value, length(value) + 1) as bigint)) as text)`;
    const sums = await on
      .selectFrom("gifts")
      .select([gwei.as("gwei"), wei.as("wei"), "organization_id"])
      .where("chain_id", "=", chainId)
      .where("sponsor", "=", lowerCase(address))
      .where("day", "=", dayOf(time))
      .groupBy("organization_id")
      .execute();
    const sum = (of: typeof sums) =>
      of.reduce((total, { gwei, wei }) => total + BigInt(gwei) * 1_000_000_000n + BigInt(wei), 0n);
    return { total: sum(sums), own: sum(sums.filter((row) => row.organization_id === organizationId)) };
  }

  /** Charges a gift to the part of an organization's budget for payers with code, because strangers can cause both. */
  async function charge(
    transaction: Transaction<LedgerTables>,
    { organizationId, network, cost }: GiftCharge,
    time: number,
  ): Promise<void> {
    const gwei = toGwei(cost);
    const row = { organization_id: organizationId, network, gwei, gwei_with_code: gwei };
    await addingToSpending(transaction, [row], time).execute();
  }

  return {
    async find(receiver) {
      const row = await find(receiver);
      return row === undefined ? null : toGift(row);
    },

    givenOn: (sponsor, time, organizationId) => givenOn(sponsor, time, organizationId),

    async give({ chainId, asset, payer, sponsor, value }, charged, { mined, dailyLimit }, sign) {
      const sender = { chainId, address: sponsor };
      await introduceSender(db, sender, mined, { movesUp: true });
      return inTransaction(db, async (transaction) => {
        // Comes first: a concurrent gift waits for this one and then sees it.
        const txNonce = await takeTxNonce(transaction, sender);
        const givenAt = now();
        const isKnown = (await find({ chainId, asset, payer }, transaction)) !== undefined;
        const { organizationId } = charged;
        const given = await givenOn(sender, givenAt, organizationId, transaction);
        const none = isKnown ? "given_before" : findLimit(value, given, dailyLimit);
        if (none !== undefined) {
          await giveBackTxNonce(transaction, sender, txNonce);
          return none;
        }
        const signed = await sign(txNonce);
        const row: GiftsTable = {
          chain_id: chainId,
          asset: lowerCase(asset),
          payer: lowerCase(payer),
          sponsor: lowerCase(sponsor),
          tx_nonce: txNonce,
          value: `${value}`,
          ...toColumns(signed),
          day: dayOf(givenAt),
          given_at: givenAt,
          organization_id: organizationId,
        };
        await transaction.insertInto("gifts").values(row).execute();
        await charge(transaction, charged, givenAt);
        return toGift(row);
      });
    },

    async open({ chainId, address }, mined) {
      const rows = await db
        .selectFrom("gifts")
        .selectAll()
        .where("chain_id", "=", chainId)
        .where("sponsor", "=", lowerCase(address))
        .where("tx_nonce", ">=", mined)
        .orderBy("tx_nonce")
        .execute();
      return rows.map(toGift);
    },

    replace: ({ chainId, sponsor, txNonce, hash, organizationId }, by, { network, more }) =>
      inTransaction(db, async (transaction) => {
        const time = now();
        const { numUpdatedRows } = await transaction
          .updateTable("gifts")
          .set({ ...toColumns(by), given_at: time })
          .where("chain_id", "=", chainId)
          .where("sponsor", "=", lowerCase(sponsor))
          .where("tx_nonce", "=", txNonce)
          .where("hash", "=", lowerCase(hash))
          .executeTakeFirst();
        if (numUpdatedRows === 0n) return false;
        if (organizationId !== null) await charge(transaction, { organizationId, network, cost: more }, time);
        return true;
      }),
  };
}

function toColumns({ raw, hash, maxFeePerGas, maxPriorityFeePerGas }: SignedAttempt) {
  return {
    raw,
    hash: lowerCase(hash),
    max_fee_per_gas: `${maxFeePerGas}`,
    max_priority_fee_per_gas: `${maxPriorityFeePerGas}`,
  };
}

function toGift(row: GiftsTable): Gift {
  return {
    chainId: row.chain_id,
    asset: row.asset,
    payer: row.payer,
    sponsor: row.sponsor,
    txNonce: row.tx_nonce,
    value: BigInt(row.value),
    raw: row.raw,
    hash: row.hash,
    maxFeePerGas: BigInt(row.max_fee_per_gas),
    maxPriorityFeePerGas: BigInt(row.max_priority_fee_per_gas),
    givenAt: Number(row.given_at),
    organizationId: row.organization_id,
  };
}
