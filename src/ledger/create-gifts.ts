import type { Kysely } from "kysely";
import { inTransaction, repeatable } from "./database/transactions.ts";
import { dayOf } from "./gas-spending.ts";
import type { Gift, Gifts, Receiver } from "./gifts.ts";
import { type GiftsTable, type LedgerTables, lowerCase } from "./rows.ts";
import type { SignedAttempt } from "./settlement.ts";
import { giveBackTxNonce, introduceSender, type Sender, takeTxNonce } from "./tx-nonces.ts";

/** Makes {@link Gifts}. */
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
    on: Kysely<LedgerTables> = db,
  ): Promise<bigint> {
    const rows = await on
      .selectFrom("gifts")
      .select("value")
      .where("chain_id", "=", chainId)
      .where("sponsor", "=", lowerCase(address))
      .where("day", "=", dayOf(time))
      .execute();
    return rows.reduce((sum, { value }) => sum + BigInt(value), 0n);
  }

  return {
    async find(receiver) {
      const row = await find(receiver);
      return row === undefined ? null : toGift(row);
    },

    givenOn: (sponsor, time) => givenOn(sponsor, time),

    async give({ chainId, asset, payer, sponsor, value }, { mined, dailyLimit }, sign) {
      const sender = { chainId, address: sponsor };
      await introduceSender(db, sender, mined, { movesUp: true });
      return inTransaction(db, async (transaction) => {
        // First: whoever gives another one waits for this, and then sees it.
        const txNonce = await takeTxNonce(transaction, sender);
        const givenAt = now();
        const isKnown = (await find({ chainId, asset, payer }, transaction)) !== undefined;
        const isTooMuch = (await givenOn(sender, givenAt, transaction)) + value > dailyLimit;
        if (isKnown || isTooMuch) {
          await giveBackTxNonce(transaction, sender, txNonce);
          return isKnown ? "given_before" : "limit_reached";
        }
        const signed = await sign(txNonce);
        const row: GiftsTable = {
          ...{ chain_id: chainId, asset: lowerCase(asset), payer: lowerCase(payer) },
          ...{ sponsor: lowerCase(sponsor), tx_nonce: txNonce, value: `${value}`, ...toColumns(signed) },
          ...{ day: dayOf(givenAt), given_at: givenAt },
        };
        await transaction.insertInto("gifts").values(row).execute();
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

    async replace({ chainId, sponsor, txNonce }, by) {
      await repeatable(() =>
        db
          .updateTable("gifts")
          .set({ ...toColumns(by), given_at: now() })
          .where("chain_id", "=", chainId)
          .where("sponsor", "=", lowerCase(sponsor))
          .where("tx_nonce", "=", txNonce)
          .execute(),
      );
    },
  };
}

function toColumns({ raw, hash, maxFeePerGas, maxPriorityFeePerGas }: SignedAttempt) {
  return {
    ...{ raw, hash: lowerCase(hash), max_fee_per_gas: `${maxFeePerGas}` },
    max_priority_fee_per_gas: `${maxPriorityFeePerGas}`,
  };
}

function toGift(row: GiftsTable): Gift {
  return {
    ...{ chainId: row.chain_id, asset: row.asset, payer: row.payer, sponsor: row.sponsor },
    ...{ txNonce: row.tx_nonce, value: BigInt(row.value), raw: row.raw, hash: row.hash },
    maxFeePerGas: BigInt(row.max_fee_per_gas),
    maxPriorityFeePerGas: BigInt(row.max_priority_fee_per_gas),
    givenAt: Number(row.given_at),
  };
}
