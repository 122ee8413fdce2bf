import type { EndpointReceipt } from "../../chain/chain.ts";
import type { Conclusion } from "../../ledger/ledger.ts";
import type { Attempt } from "../../ledger/settlement.ts";
import { createConfirmation, type Reading } from "./confirmation.ts";
import type { Flight, SenderOptions } from "./sender.ts";
import { isUnderstood, type Outcomes, type Slot, type TransactionStore } from "./slot.ts";

/** Reads what the chain has decided of the transactions in flight, and records it. */
export type OutcomeReader = {
  /**
   * One round over everything in flight.
   *
   * @returns whether anything was decided
   * @throws where the chain or the ledger cannot be asked; it is tried again with the next round
   */
  read(): Promise<boolean>;
};

export type OutcomeReaderOptions = Pick<SenderOptions, "chain" | "ways" | "account" | "log"> & {
  flight: Flight;
  store: Pick<TransactionStore, "noteMined" | "conclude" | "sendAgain">;
  outcomes: Outcomes;
};

export function createOutcomeReader(options: OutcomeReaderOptions): OutcomeReader {
  const { chain, ways, store, flight, account, log } = options;
  const { network } = chain;
  const { slots } = flight;
  const confirmation = createConfirmation({ chain, ways, log, noteMined });

  /** A block holds it, and may still vanish. The transaction makes room in the node's pool already. */
  async function noteMined(slot: Slot, receipt: EndpointReceipt): Promise<boolean> {
    if (slot.state !== "sent") return false;
    slot.state = "mined";
    slot.takenSince = undefined;
    await store.noteMined(
      slot.settlements.map(({ id }) => id),
      receipt.blockNumber,
    );
    return true;
  }

  async function onReorg(slot: Slot): Promise<boolean> {
    if (slot.state !== "mined") return false;
    log.warn(
      { network: network.name, txNonce: slot.txNonce },
      "a block with settlements vanished; they are under way again",
    );
    slot.state = "sent";
    slot.lastSentAt = 0;
    await store.noteMined(
      slot.settlements.map(({ id }) => id),
      null,
    );
    return false;
  }

  async function conclude(slot: Slot, attempt: Attempt, found: EndpointReceipt): Promise<boolean> {
    const confirmed = await confirmation.confirm(slot, attempt, found);
    if (confirmed === undefined) return false;
    const { receipt, decision } = confirmed;
    const about = { network: network.name, hash: receipt.hash };
    switch (decision.kind) {
      case "unproven":
        // From the next look on another node is asked first: this one may be wrong, or lie.
        slot.unproven++;
        log.error(
          about,
          "a receipt reports success without proof of every settlement; ignoring it and reading again",
        );
        return false;
      case "redrive":
        log.warn(about, "a transaction decided nothing about its payments; sending them singly");
        await store.sendAgain(slot, attempt.hash);
        slot.state = "draining";
        return true;
      case "concluded":
        await record(slot, attempt, { receipt, conclusions: decision.conclusions });
        return true;
    }
  }

  async function record(
    slot: Slot,
    attempt: Attempt,
    { receipt, conclusions }: Pick<Reading, "receipt"> & { conclusions: readonly Conclusion[] },
  ): Promise<void> {
    // Throws where another instance has moved a settlement elsewhere; the next comparison shows where to.
    await store.conclude(
      {
        chainId: network.chainId,
        operator: account,
        txNonce: slot.txNonce,
        hash: attempt.hash,
        blockNumber: receipt.blockNumber,
        blockHash: receipt.blockHash,
        ...(receipt.gasCost !== undefined && { gasCost: receipt.gasCost }),
      },
      conclusions,
    );
    slots.delete(slot.txNonce);
    if (slot.hasVanished) reportReturn(slot, conclusions, options);
    options.outcomes.announce(conclusions.map(({ id }) => id));
  }

  return {
    async read() {
      const looked = [...slots.values()].filter(
        (slot) => slot.state !== "draining" && isUnderstood(slot, ways),
      );
      const sent = looked.flatMap((slot) => slot.attempts.map((attempt) => ({ slot, attempt })));
      const [receipts, head] = await Promise.all([
        chain.receipts(
          sent.map(({ attempt }) => attempt.hash),
          { attempt: Math.max(0, ...looked.map(({ unproven }) => unproven)) },
        ),
        network.confirmations > 1 ? chain.head() : undefined,
      ]);
      const mined = new Map<Slot, { attempt: Attempt; receipt: EndpointReceipt }>();
      for (const [index, { slot, attempt }] of sent.entries()) {
        const receipt = receipts[index];
        if (receipt?.hash === attempt.hash) mined.set(slot, { attempt, receipt });
      }
      // All at once, so that they share one write to the disk.
      const decided = await Promise.all(
        looked.map(async (slot) => {
          const found = mined.get(slot);
          if (found === undefined) return onReorg(slot);
          const { attempt, receipt } = found;
          const depth = head === undefined ? 1n : head.number - receipt.blockNumber + 1n;
          return depth < BigInt(network.confirmations)
            ? noteMined(slot, receipt)
            : conclude(slot, attempt, receipt);
        }),
      );
      return decided.includes(true);
    },
  };
}

/** What became of a transaction that was decided before, in a block that vanished. */
function reportReturn(
  { txNonce }: Slot,
  conclusions: readonly Conclusion[],
  { chain, account, log }: Pick<OutcomeReaderOptions, "chain" | "account" | "log">,
): void {
  const about = { network: chain.network.name, operator: account, txNonce };
  const failed = conclusions.flatMap(({ id, state }) => (state === "failed" ? id : []));
  if (failed.length === 0) log.info(about, "a transaction whose block had vanished is mined again");
  else {
    const problem =
      "payments failed after the block that held them had vanished; some may have been answered as settled";
    log.error({ ...about, settlements: failed }, problem);
  }
}
