import { randomUUID } from "node:crypto";
import type { Head, SettleCall } from "../chain/chain.ts";
import { estimateFees, settleTransaction } from "../chain/transaction.ts";
import type { NetworkConfig } from "../config/network-config.ts";
import { ForbiddenError } from "../errors/forbidden.ts";
import { UndeterminedError } from "../errors/undetermined.ts";
import type { Settlement } from "../ledger/ledger.ts";
import type { Caller } from "../organizations/organizations.ts";
import type { Hex } from "../protocol/hex.ts";
import { type Invalid, invalid } from "../protocol/reasons.ts";
import type { PaymentRequest } from "../protocol/requests.ts";
import { expiryMarginSeconds, judgeWindow } from "./checks.ts";
import type { FacilitatorContext } from "./context.ts";
import { createPaymentIntake, type ReadPayment, recipientOf, requireScope } from "./intake.ts";
import { judgeRevert } from "./judge-state.ts";
import { type ProvenSignature, proveSignature } from "./signature.ts";
import { isOpenTo } from "./verify.ts";

/**
 * What a settle came to.
 * - `success` is to be handed over exactly once: whoever answers calls `delivered`, or `lost` when the answer could
 *   not be written. Until one of them is called, no other request gets this success.
 * - `pending`: signed and on its way, with its hash; the right to the answer has been given up already.
 */
export type SettleResult =
  | { kind: "invalid"; invalid: Invalid }
  | { kind: "success"; transaction: Hex; delivery: Delivery }
  | { kind: "pending"; transaction: Hex };

/** The fate of one success on its way to the caller. */
export type Delivery = {
  /** The answer was written. */
  delivered(): Promise<void>;
  /** The answer could not be written: the next identical request gets it. */
  lost(): Promise<void>;
  /** The answer was written, and then the connection was reset under it: taken back, as if lost. */
  bounced(): Promise<void>;
};

/**
 * Settles a payment. Throws when it could not be told, or when the key may not.
 * `gone` aborts when nobody waits for the answer any more: what is not signed yet is dropped, and the right to the
 * answer is given up at once, so that the same payment sent again finds it free.
 */
export type Settle = (request: PaymentRequest, caller: Caller, gone: AbortSignal) => Promise<SettleResult>;

/** Between two looks at the ledger while waiting for an outcome that another instance may conclude. */
const ledgerPollMs = 1_000;

/** How often a payment is checked again because its payer's balance moved while it was being claimed. */
const maxBalanceReads = 5;

/**
 * Makes settle. All checks run under a leased lock on the authorization; then the relayer claims it for the
 * organization together with the signed transaction, and the lease becomes the right to the answer.
 */
export function createSettle(context: FacilitatorContext): Settle {
  const { networks, ledger, outcomes, now, settleWaitMs } = context;
  const intake = createPaymentIntake(networks);

  return async (request, caller, gone) => {
    const deadline = now() + settleWaitMs[request.x402Version];
    const read = intake(request);
    if ("reason" in read) return refuse(read);
    const { payment, chain } = read;
    requireScope(caller, "settle");
    const recipient = recipientOf(caller, payment.network.name);
    if (recipient === undefined) {
      throw new ForbiddenError(
        `The organization has no recipient wallet on ${payment.network.name}; set one first`,
      );
    }

    const proven = await proveSignature(payment, chain);
    if ("reason" in proven) return refuse(proven);

    const holder = randomUUID();
    if (!(await ledger.acquireLease(payment.id, holder))) {
      const settlement = await ledger.find(payment.id);
      return refuse(describeTaken(settlement, caller, "Another request is settling this authorization"));
    }
    try {
      const settlement = await ledger.find(payment.id);
      if (settlement === null) {
        const refusal = await claim({ ...read, ...proven }, caller, recipient, deadline, gone);
        if (refusal !== undefined) {
          await ledger.releaseLease(payment.id, holder);
          return refuse(refusal);
        }
      } else if (!isOpenTo(settlement, payment, caller.organization.id)) {
        await ledger.releaseLease(payment.id, holder);
        return refuse(describeTaken(settlement, caller, "The authorization was used before"));
      }
      return await awaitOutcome(payment.id, holder, caller, deadline, gone);
    } catch (error) {
      await ledger.releaseLease(payment.id, holder);
      throw error;
    }
  };

  /** Checks the payment against the chain and has it claimed; undefined once it is in the ledger. */
  async function claim(
    { payment, chain, relayer, signature }: ReadPayment & ProvenSignature,
    caller: Caller,
    recipient: Hex,
    deadline: number,
    gone: AbortSignal,
  ): Promise<Invalid | undefined> {
    const { authorization, asset } = payment;
    const call: SettleCall = { asset: asset.address, authorization, signature, recipient };

    for (let reads = 0; reads < maxBalanceReads; reads++) {
      const { head, revert, funds } = await chain.simulateSettle(call, { withFunds: true });
      const readAt = now();
      const outsideWindow = judgeWindow(authorization, head);
      if (outsideWindow !== undefined) return outsideWindow;
      if (revert !== undefined) return judgeRevert(chain, call, revert);
      if (funds === undefined) throw new Error("the funds were not read");
      requireGasMoney(call, chain.network, head, funds.operator);

      const outcome = await relayer.submit({
        claim: {
          id: payment.id,
          organizationId: caller.organization.id,
          network: payment.network.name,
          chainId: payment.network.chainId,
          asset: asset.address,
          payer: authorization.from,
          authorizationNonce: authorization.nonce,
          digest: payment.digest,
          value: authorization.value,
          validAfter: authorization.validAfter,
          validBefore: authorization.validBefore,
          signature,
          recipient,
          balance: funds.payer,
          balanceBlock: head.number,
        },
        call,
        head,
        sendBefore: readAt + Number(authorization.validBefore - expiryMarginSeconds - head.timestamp) * 1000,
        deadline,
        gone,
      });
      switch (outcome) {
        case "claimed":
          return undefined;
        case "stale_balance":
          continue;
        case "over_balance":
          return invalid(
            "insufficient_funds",
            `The payer's balance of ${funds.payer} is taken up by settlements under way; ${authorization.value} more is needed`,
          );
        case "expired":
          return invalid(
            "invalid_exact_evm_payload_authorization_valid_before",
            "The authorization expired while it waited for its turn; nothing was sent",
          );
        case "taken":
          return invalid("invalid_transaction_state", "The authorization was used before");
        case "withdrawn":
          throw new UndeterminedError(
            "The network is too busy to settle in time; nothing was sent, try again",
          );
      }
    }
    throw new UndeterminedError("The payer's balance kept changing; nothing was sent, try again");
  }

  async function awaitOutcome(
    id: Hex,
    holder: string,
    caller: Caller,
    deadline: number,
    gone: AbortSignal,
  ): Promise<SettleResult> {
    for (;;) {
      // Subscribed before the ledger is read, so that no conclusion falls between the two.
      const announced = outcomes.next(id, Math.max(0, Math.min(ledgerPollMs, deadline - now())), gone);
      const settlement = await ledger.find(id);
      if (settlement === null) throw new Error("a claimed settlement is missing from the ledger");
      switch (settlement.state) {
        case "settled":
        case "recovered":
          return {
            kind: "success",
            transaction: settlement.transactionHash,
            delivery: {
              delivered: () => ledger.markDelivered(id, holder),
              lost: () => ledger.releaseLease(id, holder),
              bounced: () => ledger.markUndelivered(id),
            },
          };
        case "failed":
          await ledger.releaseLease(id, holder);
          return refuse(describeTaken(settlement, caller, "The authorization was used before"));
        case "submitted":
          if (now() >= deadline) {
            await ledger.releaseLease(id, holder);
            return { kind: "pending", transaction: settlement.transactionHash };
          }
          await announced;
          if (gone.aborted)
            throw new UndeterminedError(
              "The wait for the outcome was cut short; the payment is on its way, ask again",
            );
      }
    }
  }
}

/**
 * A transaction without gas money behind it would be claimed and then go nowhere.
 *
 * @throws UndeterminedError: it says nothing of the payment.
 */
function requireGasMoney(
  call: SettleCall,
  network: NetworkConfig,
  head: Head,
  operatorBalance: bigint,
): void {
  const cost = settleTransaction([call]).gas * estimateFees(head, network).maxFeePerGas;
  if (operatorBalance >= cost) return;
  throw new UndeterminedError(
    "The facilitator cannot settle at the moment; nothing was sent, try again later",
    {
      hints: [
        `The operator on ${network.name} has ${operatorBalance} wei, and one settlement may need ${cost}: send it native coins`,
      ],
    },
  );
}

function refuse(refusal: Invalid): SettleResult {
  return { kind: "invalid", invalid: refusal };
}

/** Why an authorization that is in the ledger gives no success to this request. Only its owner learns the hash. */
function describeTaken(settlement: Settlement | null, caller: Caller, otherwise: string): Invalid {
  if (settlement === null || settlement.organizationId !== caller.organization.id) {
    return invalid("invalid_transaction_state", otherwise);
  }
  const { state, transactionHash } = settlement;
  const told: Record<typeof state, string> = {
    submitted: `Another request is waiting for this settlement; its transaction is ${transactionHash}`,
    settled: `This authorization was settled before, by transaction ${transactionHash}`,
    recovered: `This authorization was settled before, by transaction ${transactionHash}`,
    failed: `The settlement failed in transaction ${transactionHash}: ${settlement.failure ?? "no reason given"}`,
  };
  return invalid("invalid_transaction_state", told[state]);
}
