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

/** A receipt, and what it decides about the payments of the transaction. */
export type Reading = { receipt: EndpointReceipt; decision: Decision };

/** Finds out what a mined transaction did, by asking as many RPC endpoints as needed. */
export type Confirmation = {
  /**
   * Returns the reading that enough endpoints agree on. For payments that failed, must be sent again or are not proven,
   * two must agree if two are configured, since the receipt is the only evidence. Undefined while too few agree:
   * nothing is decided then, however long it takes.
   *
   * @param found a receipt that is deep enough, from the first endpoint
   */
  confirm(slot: Slot, attempt: Attempt, found: EndpointReceipt): Promise<Reading | undefined>;
};

export type ConfirmationOptions = {
  chain: Chain;
  ways: WaysToPay;
  log: ServiceLog;
  /** Notes that a block holds a transaction, if no other endpoint can confirm its outcome at the moment. */
  noteMined(slot: Slot, receipt: EndpointReceipt): Promise<unknown>;
};

/** While endpoints disagree about a transaction, or too few confirm it, one in this many checks is logged … */
const logUndecidedEvery = 60;

/** … and after this many it is sent to all endpoints: those without it may never have received it. */
const sendUnconfirmedEvery = 30;

export function createConfirmation({ chain, ways, log, noteMined }: ConfirmationOptions): Confirmation {
  const { network } = chain;

  /** How many endpoints must agree: at most two, and one if only one is configured. */
  function endpointsFor(decision: Decision): number {
    const wanted = isBareWord(decision) ? failureEndpoints : (network.successEndpoints ?? 1);
    return wanted === 1 || chain.endpoints().length === 1 ? 1 : 2;
  }

  function read(slot: Slot, attempt: Attempt, receipt: EndpointReceipt, timestamp: bigint): Reading {
    const [first] = slot.settlements;
    // A transaction without payments only uses up its txNonce.
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
      // The next check asks another endpoint first: this one may be wrong, or lie.
      if (first.decision.kind === "unproven") slot.unproven++;
      if (endpointsFor(first.decision) === 1) return first;

      const readings = [first];
      let answered = 0;
      const others = eachEndpoint(
        chain,
        async (view) => {
          // One request, shared by all transactions of the round.
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
        // Two are always enough, so the first pair that agrees decides.
        const same = readings.find((other) => saysTheSame(other, reading));
        if (same !== undefined) return same;
        readings.push(reading);
      }
      // The others may be down for long. The transaction is in a block as far as we know, so it makes room for the next.
      if (answered === 0) await noteMined(slot, found);
      reportUndecided(slot, found, { isContradicted: readings.length > 1 });
      if (answered > 0 && readings.length === 1 && slot.unconfirmed % sendUnconfirmedEvery === 0)
        slot.state = "sent";
      return undefined;
    },
  };
}

/** Returns true if only the receipt supports a decision: always, unless all payments were made. */
function isBareWord(decision: Decision): boolean {
  return decision.kind !== "concluded" || decision.conclusions.some(({ state }) => state === "failed");
}

/** Returns true if two endpoints report the same outcome in the same block. */
function saysTheSame(one: Reading, other: Reading): boolean {
  return (
    one.receipt.blockHash.toLowerCase() === other.receipt.blockHash.toLowerCase() &&
    isDeepStrictEqual(one.decision, other.decision)
  );
}

/**
 * The meaning of a mined transaction for its settlements.
 * - `concluded`: it decided every one of them;
 * - `redrive`: it tells nothing about single settlements: a batch that reverted as a whole, or a no-op in its place;
 * - `unproven`: it reports success without proof of every settlement, so the receipt is not believed.
 */
export type Decision =
  | { kind: "concluded"; conclusions: readonly Conclusion[] }
  | { kind: "redrive" }
  | { kind: "unproven" };

/**
 * Decides what the receipt of one attempt means for the settlements of its txNonce, which all use the same payment
 * method; `timestamp` is the chain's time. For a forward, `settled` means paid out, and `failed` that this transaction
 * did nothing: the payer's money is still in the contract, or another transaction has taken it out.
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
      // A no-op that replaced a transaction which no node accepts leaves its payments to be sent again.
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
        // Decided by the signed calldata: a batch may be down to one settlement while the others are sent again singly.
        return settling.settlesSeveral(data)
          ? { kind: "redrive" }
          : allFailed("the transaction was reverted");
      }
      // All settlements of a transaction use the same contract.
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
