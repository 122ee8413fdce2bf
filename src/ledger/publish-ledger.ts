import { channels, type SettlementStep, type TransactionStep } from "../observe/channels/channels.ts";
import type { Hex } from "../protocol/hex.ts";
import type { Network } from "../protocol/networks.ts";
import type { Ledger } from "./ledger.ts";
import type { Attempt, Claim } from "./settlement.ts";

/** The fields of the step itself, without those that identify its subject. */
type Step<Message, Key extends keyof Message> = Message extends unknown
  ? Omit<Message, "kind" | "at" | "serviceId" | Key>
  : never;

type PublishedService = { serviceId: string; networks: readonly Pick<Network, "chainId" | "name">[] };

/**
 * Wraps a ledger so that it publishes each step of a settlement and each stored transaction once durable, on the
 * channels `settlement` and `transaction`.
 */
export function publishLedger(ledger: Ledger, service: PublishedService): Ledger {
  const { publishStep, publishClaim, publishTransaction, publishSigned } = createPublishing(service);
  const { claims, outcomes, leases, recoveries, gifts, channels: knownChannels } = ledger;
  return {
    gifts,
    channels: knownChannels,
    claims: {
      ...claims,

      async claim(operator, requests, sign) {
        const result = await claims.claim(operator, requests, sign);
        const claimed = requests.filter((_, index) => result.outcomes[index] === "claimed");
        for (const claim of claimed) publishClaim(claim);
        if (result.attempt !== null) publishSigned(result.attempt, () => claimed.map(({ id }) => id));
        return result;
      },

      async claimNothing(claim, checkedAt, charge, settledBy) {
        const outcome = await claims.claimNothing(claim, checkedAt, charge, settledBy);
        if (outcome !== "claimed") return outcome;
        publishClaim(claim);
        publishStep([claim.id], () => ({ step: "settled", transaction: settledBy?.hash }));
        return outcome;
      },

      async addAttempt(attempt) {
        const isStored = await claims.addAttempt(attempt);
        if (isStored) publishSigned(attempt, () => []);
        return isStored;
      },

      async redrive(from, ids, sign) {
        const moved = await claims.redrive(from, ids, sign);
        if (moved === null) return null;
        const movedIds = moved.settlements.map(({ id }) => id);
        publishStep(movedIds, () => ({ step: "moved" }));
        publishSigned(moved.attempt, () => movedIds);
        return moved;
      },
    },
    outcomes: {
      ...outcomes,

      async noteMined(ids, blockNumber) {
        await outcomes.noteMined(ids, blockNumber);
        publishStep(ids, () =>
          blockNumber === null ? { step: "reorganized" } : { step: "mined", blockNumber },
        );
      },

      async conclude(mined, conclusions) {
        await outcomes.conclude(mined, conclusions);
        const { chainId, hash: transaction, blockNumber } = mined;
        publishTransaction(chainId, transaction, () => ({ step: "concluded", blockNumber }));
        for (const conclusion of conclusions) {
          publishStep([conclusion.id], () =>
            conclusion.state === "settled"
              ? { step: "settled", transaction }
              : { step: "failed", transaction, failure: conclusion.failure },
          );
        }
      },
    },
    recoveries: {
      ...recoveries,

      async correctFailure(id, state, mined) {
        const isCorrected = await recoveries.correctFailure(id, state, mined);
        if (isCorrected) publishStep([id], () => ({ step: state, transaction: mined.hash }));
        return isCorrected;
      },

      async queueRecovery(id, proof) {
        await recoveries.queueRecovery(id, proof);
        publishStep([id], () => ({ step: "recoveryQueued", directSubmission: proof.transactionHash }));
      },

      async postponeRecovery(id, problem, nextLookAt) {
        await recoveries.postponeRecovery(id, problem, nextLookAt);
        publishStep([id], () => ({ step: "recoveryPostponed", problem }));
      },

      async sendForward(recoverer, id, sign) {
        const sent = await recoveries.sendForward(recoverer, id, sign);
        if (sent !== null) publishSigned(sent.attempt, () => [id]);
        return sent;
      },

      async requeueForward(ended, id, problem, nextLookAt) {
        await recoveries.requeueForward(ended, id, problem, nextLookAt);
        publishStep([id], () => ({ step: "recoveryPostponed", problem }));
      },

      async concludeForward(mined, id) {
        await recoveries.concludeForward(mined, id);
        const { chainId, hash: transaction, blockNumber } = mined;
        publishTransaction(chainId, transaction, () => ({ step: "concluded", blockNumber }));
        publishStep([id], () => ({ step: "recovered", transaction }));
      },
    },
    leases: {
      ...leases,

      async markDelivered(id, holder, kept) {
        await leases.markDelivered(id, holder, kept);
        publishStep([id], () => ({ step: "delivered" }));
      },
    },
  };
}

function createPublishing({ serviceId, networks }: PublishedService) {
  const names = new Map(networks.map(({ chainId, name }) => [chainId, name]));

  function publishStep(ids: readonly Hex[], step: () => Step<SettlementStep, "settlementId">): void {
    for (const settlementId of ids) {
      channels.settlement.publish(() => ({
        kind: "settlement",
        at: Date.now(),
        serviceId,
        settlementId,
        ...step(),
      }));
    }
  }

  function publishClaim(claim: Claim): void {
    const { id, network, organizationId, method, amount, channels } = claim;
    publishStep([id], () => ({
      step: "claimed",
      network,
      organizationId,
      method,
      amount: channels?.moved ?? amount,
    }));
  }

  function publishTransaction(
    chainId: number,
    transaction: Hex,
    step: () => Step<TransactionStep, "network" | "transaction">,
  ): void {
    const network = names.get(chainId);
    if (network === undefined) return;
    channels.transaction.publish(() => ({
      kind: "transaction",
      at: Date.now(),
      serviceId,
      network,
      transaction,
      ...step(),
    }));
  }

  function publishSigned(attempt: Attempt, settlementIds: () => readonly Hex[]): void {
    const { chainId, hash, kind, operator, txNonce, maxFeePerGas, maxPriorityFeePerGas } = attempt;
    publishTransaction(chainId, hash, () => ({
      step: "signed",
      purpose: kind,
      operator,
      txNonce,
      maxFeePerGas,
      maxPriorityFeePerGas,
      settlementIds: settlementIds(),
    }));
  }

  return { publishStep, publishClaim, publishTransaction, publishSigned };
}
