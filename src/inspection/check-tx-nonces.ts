import { findForeignTransactions } from "../chain/tx-nonces.ts";
import { expectAnswer } from "../deploy/expect-answer.ts";
import type { Address } from "../protocol/hex.ts";
import type { Network } from "../protocol/networks.ts";
import { readQuantity } from "../rpc/read-hex.ts";
import type { Rpc } from "../rpc/rpc.ts";
import type { Check } from "./check.ts";

export type TxNonceCheckOptions = {
  rpc: Pick<Rpc, "ask">;
  network: Network;
  operators: readonly Address[];
  /** The txNonce after the last one in the ledger; null for an operator that it does not know. */
  nextTxNonce: (chainId: number, operator: Address) => Promise<number | null>;
};

/** Looks for transactions of the operators that the ledger knows nothing of. */
export function checkTxNonces(options: TxNonceCheckOptions): Promise<readonly Check[]> {
  return Promise.all(options.operators.map((operator) => checkTxNonce(options, operator)));
}

async function checkTxNonce(options: TxNonceCheckOptions, operator: Address): Promise<Check> {
  const { rpc, network, nextTxNonce } = options;
  // The chain first: what another instance sends after that is in the ledger before it is on the chain.
  const [minedAnswer, pendingAnswer] = await rpc.ask(
    ["latest", "pending"].map((block) => ({ method: "eth_getTransactionCount", params: [operator, block] })),
  );
  const mined = Number(expectAnswer("the operator's txNonce", minedAnswer, readQuantity));
  const pending = Number(expectAnswer("the operator's pending txNonce", pendingAnswer, readQuantity));
  const next = await nextTxNonce(network.chainId, operator);
  const foreign = findForeignTransactions({ network: network.name, operator, mined, pending, next });
  if (foreign !== undefined) {
    const { problem, advice } = foreign;
    return { name: "txNonce", status: "failed", detail: problem, advice, fatal: true };
  }
  const detail =
    next === null
      ? `${operator} is new to this database, and begins at ${mined}`
      : `${operator} goes on at ${next}, the chain is at ${mined}`;
  return { name: "txNonce", status: "ok", detail };
}
