import type { Chain } from "../../chain/chain.ts";
import type { Conclusion, Ledger } from "../../ledger/ledger.ts";
import type { Settlement } from "../../ledger/settlement.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { createLogger } from "../../observe/log/logger.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { self } from "../../util/self-command.ts";
import { classifyFailure } from "./classify-failure.ts";
import { createFailureFollowUp } from "./recovery.ts";
import { createFlight, type Flight } from "./sender.ts";
import { createOutcomes, type Slot } from "./slot.ts";
import { createOutcomeReader } from "./watcher.ts";

/** An undecided settlement, and what the chain tells about it. Printed as JSON. */
export type Reexamined = {
  network: string;
  settlement: Hex;
  organization: string;
  /** In the asset's smallest unit, decimal. */
  value: string;
  /** `recovering`: somebody else submitted it, and its value is in the contract. */
  outcome: "settled" | "failed" | "recovering" | "undecided";
  /** A description of the evidence. */
  found: string;
  /** The transaction that paid it, or that was sent for it. */
  transaction: Hex;
};

/** The end of a settlement, with its evidence. */
type Ending = Pick<Reexamined, "outcome" | "found" | "transaction">;

/**
 * Reads the receipts of undecided settlements again, each by the contract that it was claimed for. If a deep receipt proves
 * nothing, the chain is asked as for a failure: a settlement ends only if logs show what became of its authorization, or if
 * it was never used and has finally expired. A transaction ends with all its settlements, or not at all.
 *
 * @param chosen undecided settlements of the chain
 */
export async function reexamine(
  {
    chain,
    ledger,
    ways,
    now,
    dryRun,
  }: {
    chain: Chain;
    ledger: Ledger;
    ways: WaysToPay;
    now: () => number;
    dryRun: boolean;
  },
  chosen: readonly Settlement[],
): Promise<readonly Reexamined[]> {
  const { network } = chain;
  const { chainId } = network;
  const log = createLogger("silent");
  const { followUp } = createFailureFollowUp({
    chain,
    ledger: ledger.recoveries,
    ways,
    recoverer: undefined,
    now,
    log,
  });
  const endings = new Map<Hex, Ending>();

  async function examineOperator(operator: Address, ids: ReadonlySet<Hex>): Promise<void> {
    const flight: Flight = createFlight(now);
    for (const batch of await ledger.claims.openAttempts(chainId, operator)) {
      if (batch.settlements.some(({ id }) => ids.has(id))) flight.track(batch);
    }
    const reader = createOutcomeReader({
      chain,
      ways,
      flight,
      account: operator,
      now,
      log,
      outcomes: createOutcomes(),
      store: {
        noteMined: async (some, block) => (dryRun ? undefined : ledger.outcomes.noteMined(some, block)),
        // Sending again needs the operator's key.
        sendAgain: async () => {},
        async conclude(mined, conclusions) {
          for (const conclusion of conclusions) {
            const { id, state } = conclusion;
            const found =
              state === "failed" ? conclusion.failure : "the receipt of its transaction proves it";
            endings.set(id, { outcome: state, found, transaction: mined.hash });
          }
          if (!dryRun) await ledger.outcomes.conclude(mined, conclusions);
        },
      },
    });
    await reader.read();
    for (const slot of flight.slots.values()) if (slot.unprovenSince !== undefined) await end(operator, slot);
  }

  /** Ends a mined transaction whose receipt proves nothing, if the chain shows otherwise what became of all its settlements. */
  async function end(operator: Address, slot: Slot): Promise<void> {
    const receipts = await chain.receipts(slot.attempts.map(({ hash }) => hash));
    const receipt = receipts.find((one) => one !== null);
    if (!receipt) return;
    const { hash, blockNumber, blockHash, gasCost } = receipt;
    const found = new Map<Hex, Ending>();
    for (const { id } of slot.settlements) found.set(id, await classify(id, hash));
    for (const [id, ending] of found) endings.set(id, ending);
    if ([...found.values()].some(({ outcome }) => outcome === "undecided")) {
      for (const [id, ending] of found) if (ending.outcome !== "undecided") endings.set(id, heldUp(ending));
      return;
    }
    if (dryRun) return;
    // If another transaction has paid it, it failed in this one; the follow-up corrects that.
    const conclusions = [...found].map(
      ([id, { outcome, transaction, found: failure }]): Conclusion =>
        outcome === "settled" && transaction === hash
          ? { id, state: "settled" }
          : { id, state: "failed", failure },
    );
    await ledger.outcomes.conclude(
      {
        chainId,
        operator,
        txNonce: slot.txNonce,
        hash,
        blockNumber,
        blockHash,
        ...(gasCost !== undefined && { gasCost }),
      },
      conclusions,
    );
    for (const { id } of conclusions) {
      const failure = await ledger.recoveries.findFailure(id);
      if (failure !== null) await followUp(failure);
    }
  }

  async function classify(id: Hex, transaction: Hex): Promise<Ending> {
    const undecided = (found: string): Ending => ({ outcome: "undecided", found, transaction });
    const settlement = await ledger.claims.find(id);
    if (settlement === null) return undecided("it is not in the ledger any more");
    const failure = { settlement, usedByBlock: null, nextLookAt: null, recovery: null };
    try {
      const look = await classifyFailure({ chain, ways, now }, failure);
      switch (look.kind) {
        case "paid":
          return {
            outcome: "settled",
            found: "the logs of a transaction show that it was paid",
            transaction: look.payout.hash,
          };
        case "submitted":
          return {
            outcome: "recovering",
            found: `it was submitted directly to the token, and its value is in the contract: ${self} recover`,
            transaction: look.proof.transactionHash,
          };
        case "unused":
          return look.over
            ? { outcome: "failed", found: "its authorization was never used, and has expired", transaction }
            : undecided(notExpired);
        case "spent":
          return look.isShown
            ? {
                outcome: "failed",
                found: "its authorization was cancelled, or used before the claim",
                transaction,
              }
            : undecided(
                "its authorization is used, and no log proves for what: look up at the token which transaction used it",
              );
        case "undone":
          return undecided(notExpired);
        case "recent":
          return undecided("its authorization was used just now; how shows when the block is deeper");
        case "disputed":
          return undecided(look.problem);
      }
    } catch (error) {
      if (!(error instanceof KitError)) throw error;
      return undecided(error.message);
    }
  }

  for (const operator of new Set(chosen.map((settlement) => settlement.operator))) {
    const ids = chosen.filter((settlement) => settlement.operator === operator).map(({ id }) => id);
    await examineOperator(operator, new Set(ids));
  }
  return chosen.map((settlement) => ({
    network: settlement.network,
    settlement: settlement.id,
    organization: settlement.organizationId,
    value: `${settlement.amount}`,
    ...(endings.get(settlement.id) ?? {
      outcome: "undecided",
      found: `no block that is deep enough holds its transaction, or too few RPC endpoints say so; serve with the key of ${settlement.operator} sends it on`,
      transaction: settlement.transactionHash,
    }),
  }));
}

const notExpired = "its authorization is unused and can still be used; look again when it has expired";

/** An ending that has to wait for another settlement of the same transaction. */
function heldUp({ found, transaction }: Ending): Ending {
  return {
    outcome: "undecided",
    found: `${found}; it ends together with the other settlements of its transaction`,
    transaction,
  };
}
