import type { Conclusion, Ledger } from "../../ledger/ledger.ts";
import type { ConcludedTransaction, MinedTransaction, TxNonceRange } from "../../ledger/settlement.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { Batch } from "./slot.ts";

/**
 * Where the transactions of one account on one network are kept, and what their outcomes mean: settles of an operator,
 * or forwards of the recoverer. The watcher drives both in the same way.
 */
export type TransactionStore = {
  /** Attempts whose txNonce is open, lowest txNonce first, each with its settlements. */
  open(): Promise<readonly Batch[]>;
  /** The txNonce after the last one that was taken. */
  next(): Promise<number>;
  /** Transactions that decided settlements, highest txNonce first. */
  concluded(range: TxNonceRange): Promise<readonly ConcludedTransaction[]>;
  /** Takes conclusions back whose block has vanished from the chain; {@link open} gives their transactions from then on. */
  reopen(transactions: readonly ConcludedTransaction[]): Promise<void>;
  fillTxNonce: Ledger["outcomes"]["fillTxNonce"];
  addAttempt: Ledger["claims"]["addAttempt"];
  noteMined: Ledger["outcomes"]["noteMined"];
  /** Records what a mined transaction decided, and closes its txNonce. Recording it twice changes nothing. */
  conclude(mined: MinedTransaction, conclusions: readonly Conclusion[]): Promise<void>;
  /**
   * Has settlements sent again whose txNonce was taken without deciding them: by `mined`, one of their own
   * transactions, or, where that is null, by one of another sender. Resolves when that is under way or recorded.
   */
  sendAgain(batch: { txNonce: number; settlements: Batch["settlements"] }, mined: Hex | null): Promise<void>;
};
