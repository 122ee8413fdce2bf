import { setTimeout as sleep } from "node:timers/promises";
import type { Chain } from "../../chain/chain.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { FailedSettlement } from "../../ledger/recoveries.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { classifyFailure } from "./classify-failure.ts";
import { findLimitObstacle } from "./recoverer.ts";
import type { RecoveryLoop } from "./recovery.ts";
import { chainOf } from "./slot.ts";

/** A payment that was, or may have been, submitted directly to the token, and what became of it. Printed as JSON. */
export type RecoverResult = {
  network: string;
  settlement: Hex;
  organization: string;
  payer: Hex;
  recipient: Hex;
  asset: Hex;
  /** In the asset's smallest unit, decimal. */
  value: string;
  outcome: "recovered" | "would recover" | "waits" | "unknown";
  /** The forward if it is recovered, otherwise the direct submission; null if none is known. */
  transaction: Hex | null;
  /** Why it waits, or why its outcome is unknown. */
  problem: string | null;
};

/** The number of failures read and examined at once. */
const pageSize = 20;
const pollMs = 200;

/** How long to wait for forwards; slower ones are continued by the next run, or by `serve`. */
const timeoutMs = 120_000;

/** Examines all failures of a chain that are not final. A failure without a direct submission gives no result. */
export async function* recoverNetwork(options: {
  chain: Chain;
  ledger: Ledger;
  ways: WaysToPay;
  /** Transactions that the operator has looked up; see {@link classifyFailure}. */
  confirmed: ReadonlySet<Hex>;
  now: () => number;
  /** Undefined for a dry run. */
  recovery: RecoveryLoop | undefined;
  /** The recoverer of `recovery`; forwards sent by others are not waited for. */
  recoverer: Address | undefined;
  interrupted: AbortSignal;
}): AsyncGenerator<RecoverResult> {
  const { chain, ledger, ways, confirmed, now, recovery, recoverer, interrupted } = options;
  const started: FailedSettlement[] = [];
  for (let after: Hex | null = null; !interrupted.aborted; ) {
    const page: readonly FailedSettlement[] = await ledger.recoveries.openFailures(
      chain.network.chainId,
      pageSize,
      after,
    );
    const results = await Promise.all(page.map((failure) => take(failure)));
    for (const [index, result] of results.entries()) {
      const failure = page[index];
      if (result === "started" && failure !== undefined) started.push(failure);
      else if (typeof result === "object") yield result;
    }
    after = page.at(-1)?.settlement.id ?? null;
    if (after === null) break;
  }
  for (const failure of started) yield await waitForEnd(failure);

  async function take(failure: FailedSettlement): Promise<RecoverResult | "started" | undefined> {
    try {
      if (failure.recovery?.state === "sent") {
        const isOurs = recoverer !== undefined && sameAddress(failure.recovery.recoverer ?? "", recoverer);
        return isOurs ? "started" : describe(failure, { outcome: "waits", problem: sentBy(failure) });
      }
      if (recovery === undefined) return await classify(failure);
      const { outcome } = await recovery.followUp(failure);
      return outcome === "failed" || outcome === "expired" ? undefined : "started";
    } catch (error) {
      if (!(error instanceof KitError)) throw error;
      return describe(failure, { outcome: "unknown", problem: error.message });
    }
  }

  async function classify(failure: FailedSettlement): Promise<RecoverResult | undefined> {
    const look = await classifyFailure({ chain, ways, now }, failure, confirmed);
    switch (look.kind) {
      case "submitted": {
        const { settlement } = failure;
        const means = ways.settlingOf(settlement.method).recovery;
        const obstacle =
          look.obstacle ??
          (means && (await findLimitObstacle(chainOf(chain, settlement), means, settlement)));
        return describe(failure, {
          outcome: obstacle === undefined ? "would recover" : "waits",
          transaction: look.proof.transactionHash,
          problem: obstacle ?? null,
        });
      }
      case "recent":
        return describe(failure, {
          outcome: "unknown",
          problem: "its authorization was used just now; how shows when the block is deeper",
        });
      case "paid":
        return describe(failure, { outcome: "would recover", transaction: look.payout.hash });
      case "undone":
        return describe(failure, {
          outcome: "unknown",
          problem: "the block that decided it has vanished from the chain; serve sends its transaction again",
        });
      case "disputed":
        return describe(failure, { outcome: "unknown", problem: look.problem });
      case "unused":
      case "spent":
        return undefined;
    }
  }

  /** Waits until a started recovery ends. */
  async function waitForEnd(failure: FailedSettlement): Promise<RecoverResult> {
    const { id } = failure.settlement;
    for (const deadline = Date.now() + timeoutMs; ; ) {
      const now = await ledger.recoveries.findFailure(id);
      if (now === null) {
        const settlement = await ledger.claims.find(id);
        return describe(failure, { outcome: "recovered", transaction: settlement?.transactionHash ?? null });
      }
      const { recovery: state } = now;
      const isPutOff = state?.state === "queued" && state.problem !== null;
      if (isPutOff || state === null || interrupted.aborted || Date.now() > deadline) {
        const problem =
          state === null ? "its submission is not on the chain any more" : (state.problem ?? sentBy(now));
        return describe(now, { outcome: "waits", problem });
      }
      await sleep(pollMs);
    }
  }
}

function sentBy({ recovery }: FailedSettlement): string {
  return `its forward by ${recovery?.recoverer ?? "an unknown account"} is not mined yet`;
}

function describe(
  { settlement, recovery }: FailedSettlement,
  what: Pick<RecoverResult, "outcome"> & Partial<RecoverResult>,
): RecoverResult {
  return {
    network: settlement.network,
    settlement: settlement.id,
    organization: settlement.organizationId,
    payer: settlement.payer,
    recipient: settlement.recipient,
    asset: settlement.asset,
    value: settlement.amount.toString(),
    transaction: recovery?.proof.transactionHash ?? null,
    problem: null,
    ...what,
  };
}
