import type { Address } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import { self } from "../util/self-command.ts";

/** How far an operator's transactions are, by the chain and by the ledger. */
export type TxNonces = {
  network: NetworkName;
  operator: Address;
  /** Transactions in blocks. Read before `next`: what another instance sends after that is in the ledger first. */
  mined: number;
  /** The same with those that wait in the node's pool. */
  pending: number;
  /** The txNonce after the last one in the ledger; null for an operator that it does not know. */
  next: number | null;
};

/**
 * Why an operator must not send: there are transactions of it that are not in the ledger, so another party sends
 * with its key, and two services on one key take each other's txNonces. Undefined when all is well.
 */
export function findForeignTransactions(nonces: TxNonces): { problem: string; advice: string } | undefined {
  const { network, operator, mined, pending, next } = nonces;
  if (next === null && pending > mined) {
    return {
      problem: `${operator} has transactions under way that this database does not know`,
      advice:
        "Another service sends with this key. Stop it, or give this service an operator of its own; then wait until they are mined.",
    };
  }
  const onChain = Math.max(mined, pending);
  if (next === null || onChain <= next) return undefined;
  return {
    problem: `the chain is at ${onChain} for ${operator}, and this database at ${next}: another service sends with this key, or the database is an old copy`,
    advice: `One key belongs to one database. Stop the other service and use its database, or give this one an operator of its own: ${self} deploy --network ${network} --grant-operator ADDRESS. When no other service sends with it any more: ${self} operator accept-tx-nonce --network ${network} --operator ${operator}`,
  };
}
