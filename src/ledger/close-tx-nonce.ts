import type { Transaction } from "kysely";
import type { Address, Hex } from "../protocol/hex.ts";
import { lowerCase } from "./rows.ts";
import type { LedgerTables } from "./tables.ts";

/** None of a txNonce's attempts can be mined any more, except the one that was; null where it was none of them. */
export async function closeTxNonce(
  transaction: Transaction<LedgerTables>,
  { chainId, operator, txNonce }: { chainId: number; operator: Address; txNonce: number },
  mined: Hex | null,
): Promise<void> {
  const open = transaction
    .updateTable("attempts")
    .where("chain_id", "=", chainId)
    .where("operator", "=", lowerCase(operator))
    .where("tx_nonce", "=", txNonce)
    .where("state", "=", "open");
  if (mined !== null) {
    await open.where("hash", "=", lowerCase(mined)).set({ state: "mined" }).execute();
  }
  await open.set({ state: "superseded" }).execute();
}
