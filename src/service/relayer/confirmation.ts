import { isDeepStrictEqual } from "node:util";
import { type Chain, eachEndpoint, failureEndpoints } from "../../chain/chain.ts";
import type { EndpointReceipt, Receipt } from "../../chain/logs-and-receipts.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Conclusion } from "../../ledger/ledger.ts";
import type { Attempt, Claim } from "../../ledger/settlement.ts";
import type { Settling } from "../../methods/on-chain/settling.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { ServiceLog } from "../../observe/log/logger.ts";
import { readTransaction } from "../../protocol/signed-transaction.ts";
import { callOf, networkOf, type Slot } from "./slot.ts";

/** A receipt, and its decision about the payments of the transaction. */
export type Reading = { receipt: EndpointReceipt; decision: Decision };

/** Finds out what a mined transaction did, by the word of as many RPC endpoints as it takes. */
export type Confirmation = {
  /**
   * The reading that enough endpoints agree on. For payments that failed, are to be sent again, or are not proven, it takes two
   * if two are configured, since the receipt is the only evidence. Undefined while too few agree: nothing is decided then,
   * however long it lasts.
   *
   * @param found a receipt that is deep enough, as the first endpoint gives it
   */
  confirm(slot: Slot, attempt: Attempt, found: EndpointReceipt): Promise<Reading | undefined>;
};

export type ConfirmationOptions = {
  chain: Chain;
  ways: WaysToPay;
  log: ServiceLog;
  /** Notes that a block holds a transaction whose outcome nobody else can say at the moment. */
  noteMined(slot: Slot, receipt: EndpointReceipt): Promise<unknown>;
};

/** Of the looks at a transaction of which endpoints say different things, or too few the same, one in so many is logged. */
const logUndecidedEvery = 60;

/** … and after one in so many it is sent to all endpoints: what another does not have may never have reached it. */
const sendUnconfirmedEvery = 30;

export function createConfirmation({ chain, ways, log, noteMined }: ConfirmationOptions): Confirmation {
  const { network } = chain;

  /** How many endpoints must say it: never more than two, and one where there is only one. */
  function endpointsFor(decision: Decision): number {
    const wanted = isBareWord(decision) ? failureEndpoints : (network.successEndpoints ?? 1);
    return wanted === 1 || chain.endpoints().length === 1 ? 1 : 2;
  }

  function read(slot: Slot, attempt: Attempt, receipt: EndpointReceipt, timestamp: bigint): Reading {
    const [first] = slot.settlements;
    // One without payments takes its txNonce, and decides nothing else.
    if (first === undefined) return { receipt, decision: { kind: "concluded", conclusions: [] } };
    const settling = ways.settlingOf(first.method);
    return {
      receipt,
      decision: decide(receipt, attempt, slot.settlements, { network, settling, timestamp }),
    };
  }

  function reportUndecided(
    slot: Slot,
    { hash, endpoint }: EndpointReceipt,
    { isContradicted }: { isContradicted: boolean },
  ): void {
    const about = { network: network.name, hash, endpoint };
    if (isContradicted) {
      if (slot.contradicted++ % logUndecidedEvery === 0)
        log.error(
          about,
          "RPC endpoints say different things about a transaction; its payments stay undecided until two agree",
        );
    } else if (++slot.unconfirmed % logUndecidedEvery === logUndecidedEvery / 2) {
      log.error(
        about,
        "no other RPC endpoint confirms what a transaction did; its payments stay undecided until one does. Mend the other endpoints of this network, or take what is gone for good out of its *_RPC_URL",
      );
    }
  }

  return {
    async confirm(slot, attempt, found) {
      const isNoop = attempt.kind === "noop" && slot.settlements.length > 0;
      const { timestamp } = isNoop ? await chain.head() : { timestamp: 0n };
      const first = read(slot, attempt, found, timestamp);
      // From the next look on another endpoint is asked first: this one may be wrong, or lie.
      if (first.decision.kind === "unproven") slot.unproven++;
      if (endpointsFor(first.decision) === 1) return first;

      const readings = [first];
      let answered = 0;
      const others = eachEndpoint(
        chain,
        async (view) => {
          // In one request, which all transactions of a round share.
          const [[receipt = null], head] = await Promise.all([view.receipts([attempt.hash]), view.head()]);
          return { receipt, head };
        },
        found.endpoint,
      );
      for await (const { receipt, head } of others) {
        answered++;
        const isDeep =
          receipt !== null && head.number - receipt.blockNumber + 1n >= BigInt(network.confirmations);
        if (!isDeep) continue;
        const reading = read(slot, attempt, receipt, head.timestamp);
        // Two suffice for everything, so that the first pair that agrees decides.
        const same = readings.find((other) => saysTheSame(other, reading));
        if (same !== undefined) return same;
        readings.push(reading);
      }
      // Others may not answer for long: the transaction is in a block, as far as anyone says, and makes room for the next.
      if (answered === 0) await noteMined(slot, found);
      reportUndecided(slot, found, { isContradicted: readings.length > 1 });
      if (answered > 0 && readings.length === 1 && slot.unconfirmed % sendUnconfirmedEvery === 0)
        slot.state = "sent";
      return undefined;
    },
  };
}

/** Returns true if nothing but a receipt's word stands for a decision: anything except that all payments were made. */
function isBareWord(decision: Decision): boolean {
  return decision.kind !== "concluded" || decision.conclusions.some(({ state }) => state === "failed");
}

/** Returns true if two endpoints say the same of the payments, by the same block. */
function saysTheSame(one: Reading, other: Reading): boolean {
  return (
    one.receipt.blockHash.toLowerCase() === other.receipt.blockHash.toLowerCase() &&
    isDeepStrictEqual(one.decision, other.decision)
  );
}

/**
 * The meaning of a mined transaction for its settlements.
 * - `concluded`: it decided every one of them;
 * - `redrive`: it says nothing about a single settlement: a batch that was reverted as a whole, or a no-op in its place;
 * - `unproven`: it says success without proof of every settlement. Such a receipt is not believed.
 */
export type Decision =
  | { kind: "concluded"; conclusions: readonly Conclusion[] }
  | { kind: "redrive" }
  | { kind: "unproven" };

/**
 * Reads the receipt of one attempt against the settlements of its txNonce, which are all paid the same way; `timestamp` is
 * the chain's time. For a
 * forward, `settled` means paid out, and `failed` that this transaction did nothing: what the payer paid is still in the
 * contract, or was taken out by another transaction.
 */
export function decide(
  receipt: Receipt,
  attempt: Pick<Attempt, "kind" | "raw">,
  settlements: readonly Claim[],
  { network, settling, timestamp }: { network: NetworkConfig; settling: Settling; timestamp: bigint },
): Decision {
  const toCall = (claim: Claim) => callOf(claim, network);
  const all = (conclusionOf: (claim: Claim) => Conclusion): Decision => ({
    kind: "concluded",
    conclusions: settlements.map(conclusionOf),
  });
  const allFailed = (failure: string) => all(({ id }) => ({ id, state: "failed", failure }));
  switch (attempt.kind) {
    case "noop":
      // One that replaced what no node takes leaves its payments to be sent anew.
      if (settlements.some(({ window }) => window.last >= timestamp)) return { kind: "redrive" };
      return allFailed("the authorization expired before it could be mined");
    case "forward": {
      if (!receipt.succeeded) return allFailed("the forward was mined and reverted");
      const isProven = settlements.every((claim) =>
        settling.recovery?.proves(receipt, networkOf(network, claim), toCall(claim)),
      );
      return isProven ? all(({ id }) => ({ id, state: "settled" })) : { kind: "unproven" };
    }
    case "settle": {
      const { data } = readTransaction(attempt.raw);
      if (!receipt.succeeded) {
        // By what was signed: of a batch whose payments are being sent again singly, one may be left.
        return settling.settlesSeveral(data)
          ? { kind: "redrive" }
          : allFailed("the transaction was reverted");
      }
      // A transaction goes to one contract.
      const [first] = settlements;
      const proofs = settling.prove(receipt, first === undefined ? network : networkOf(network, first), data);
      const conclusions: Conclusion[] = [];
      for (const claim of settlements) {
        const { id } = claim;
        const proof = proofs.find(toCall(claim));
        if (proof === undefined) return { kind: "unproven" };
        conclusions.push(
          proof.settled ? { id, state: "settled" } : { id, state: "failed", failure: proof.failure },
        );
      }
      return { kind: "concluded", conclusions };
    }
  }
}
