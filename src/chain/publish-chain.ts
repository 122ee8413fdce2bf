import { channels } from "../observe/channels/channels.ts";
import { type Hex, keccak256 } from "../protocol/hex.ts";
import type { NetworkName } from "../protocol/networks.ts";
import type { Chain } from "./chain.ts";
import type { Head } from "./rpc/calls.ts";
import type { ObservedCall } from "./rpc/endpoint-state.ts";

/**
 * Makes the chains of one network publish the transactions they send, the receipts they read and each new block on the
 * channels `transaction` and `block`. All operators of the network share it, so a block is published once.
 */
export function createChainPublisher(network: NetworkName, serviceId: string): (chain: Chain) => Chain {
  let newest = -1n;

  function publishBlock({ number, timestamp }: Head): void {
    if (number <= newest) return;
    newest = number;
    channels.block.publish(() => ({
      kind: "block",
      at: Date.now(),
      serviceId,
      network,
      number,
      timestamp,
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
          kind: "transaction",
          at: Date.now(),
          serviceId,
          network,
          step: "broadcast",
          everywhere,
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
          kind: "transaction",
          at: Date.now(),
          serviceId,
          network,
          step: "receipt",
          transaction,
          succeeded,
          blockNumber,
          blockHash,
        }));
      }
      return receipts;
    },
  });
}

/**
 * Groups the methods of an HTTP request by subject, see `RpcCall.about`. A call without a subject, such as the newest
 * block, counts for every subject of its question. Most payments need the same methods, so they share one list;
 * observers keep it for each payment.
 */
export function methodsAbout(
  questions: readonly (readonly ObservedCall[])[],
): ReadonlyMap<Hex, readonly string[]> {
  const methods = new Map<Hex, readonly string[]>();
  /** The previous subject's list, to be shared. */
  let last: readonly string[] = [];
  for (const question of questions) {
    for (const subject of subjectsOf(question)) {
      const known = methods.get(subject);
      if (known === undefined && isAskedFor(subject, question, last)) methods.set(subject, last);
      else {
        last = [...(known ?? []), ...methodsFor(subject, question)];
        methods.set(subject, last);
      }
    }
  }
  return methods;
}

function methodsFor(subject: Hex, question: readonly ObservedCall[]): string[] {
  return question.flatMap(({ about, method }) => (about === undefined || about === subject ? method : []));
}

/** Returns true if a question has exactly these methods for a subject. */
function isAskedFor(subject: Hex, question: readonly ObservedCall[], methods: readonly string[]): boolean {
  let count = 0;
  for (const { about, method } of question) {
    if (about !== undefined && about !== subject) continue;
    if (methods[count++] !== method) return false;
  }
  return count === methods.length;
}

/** Returns the subjects of a question. Usually there is only one, which saves the set. */
function subjectsOf(question: readonly ObservedCall[]): Iterable<Hex> {
  let only: Hex | undefined;
  for (const { about } of question) {
    if (about === undefined || about === only) continue;
    if (only !== undefined) return new Set(question.flatMap((call) => call.about ?? []));
    only = about;
  }
  return only === undefined ? [] : [only];
}
