import type { Kysely } from "kysely";
import type { Address } from "../protocol/hex.ts";
import { bindIdentifiers } from "./claim.ts";
import { inTransaction } from "./database/transactions.ts";
import { addingToSpending, toGwei } from "./gas-spending.ts";
import type { Claims } from "./ledger.ts";
import { fromSettlement, type LedgerTables } from "./rows.ts";
import { noTransaction } from "./settlement.ts";

/** No operator sends anything. */
const nobody: Address = `0x${"00".repeat(20)}`;

/** Makes {@link Claims.claimNothing}. */
export function createClaimNothing(db: Kysely<LedgerTables>, now: () => number): Claims["claimNothing"] {
  return (claim, checkedAt, charge) =>
    inTransaction(db, async (transaction) => {
      const time = now();
      const row = fromSettlement({
        ...claim,
        state: "settled",
        ...{ operator: nobody, txNonce: -1, transactionHash: noTransaction },
        ...{ blockNumber: null, blockHash: null, failure: null },
        ...{ claimedBlock: checkedAt, claimedAt: time, concludedAt: time, deliveredAt: null },
      });
      const written = await transaction
        .insertInto("settlements")
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .returning("id")
        .executeTakeFirst();
      if (written === undefined) return "taken";
      const request = { ...claim, balance: 0n, balanceBlock: checkedAt };
      const reused = await bindIdentifiers(transaction, {
        ...{ requests: [request], outcomes: ["claimed"], time },
      });
      if (reused.length === 0) {
        const { organization_id, network } = row;
        const spent = { organization_id, network, gwei: toGwei(charge), gwei_with_code: 0 };
        await addingToSpending(transaction, [spent], time).execute();
        return "claimed";
      }
      // It is not claimed under another payment's identifier.
      await transaction.deleteFrom("settlements").where("id", "=", written.id).execute();
      return "identifier_reused";
    });
}
