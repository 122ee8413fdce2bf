import { channels } from "../observe/channels/channels.ts";
import { keccak256 } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { Chain } from "./chain.ts";
import type { Head } from "./rpc/calls.ts";

/**
 * What makes the chains of one network publish on the channels `transaction` and `block` what they send, which
 * receipts they read, and each new block. All operators of the network share it, so that a block shows once.
 */
export function createChainPublisher(network: NetworkName, serviceId: string): (chain: Chain) => Chain {
  let newest = -1n;

  function publishBlock({ number, timestamp }: Head): void {
    if (number <= newest) return;
    newest = number;
    channels.block.publish(() => ({
      ...{ kind: "block", at: Date.now(), serviceId, network, number, timestamp },
    }));
  }

  return (chain) => ({
    ...chain,

    async simulate(transaction, options) {
      const simulation = await chain.simulate(transaction, options);
      publishBlock(simulation.head);
      return simulation;
    },

    async head() {
      const head = await chain.head();
      publishBlock(head);
      return head;
    },

    async broadcast(rawTransactions, options = {}) {
      const { everywhere = false, hashes } = options;
      for (const [index, raw] of rawTransactions.entries()) {
        channels.transaction.publish(() => ({
          ...{ kind: "transaction", at: Date.now(), serviceId, network, step: "broadcast", everywhere },
          transaction: hashes?.[index] ?? keccak256(raw),
        }));
      }
      await chain.broadcast(rawTransactions, options);
    },

    async receipts(hashes, options) {
      const receipts = await chain.receipts(hashes, options);
      for (const receipt of receipts) {
        if (receipt === null) continue;
        const { hash: transaction, succeeded, blockNumber, blockHash } = receipt;
        channels.transaction.publish(() => ({
          ...{ kind: "transaction", at: Date.now(), serviceId, network, step: "receipt", transaction },
          ...{ succeeded, blockNumber, blockHash },
        }));
      }
      return receipts;
    },
  });
}
