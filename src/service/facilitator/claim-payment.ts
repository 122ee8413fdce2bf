import type { Funds } from "../../chain/chain.ts";
import { estimateFees } from "../../chain/fees.ts";
import type { Head } from "../../chain/rpc/calls.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { BoundIdentifier } from "../../ledger/settlement.ts";
import type { SettleCall } from "../../methods/on-chain/settling.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { type Invalid, invalid } from "../../protocol/catalogue.ts";
import { checkValidityWindow } from "../../protocol/checks.ts";
import type { Address } from "../../protocol/hex.ts";
import { problemDetails } from "../../protocol/problems.ts";
import { expiryMarginSeconds, refusals } from "../../protocol/refusals.ts";
import { IdentifierReusedError, OperatorError, UndeterminedError } from "../../util/errors.ts";
import { type Caller, refusedForCode } from "../organizations/organizations.ts";
import { poll } from "../relayer/poll.ts";
import type { Submission } from "../relayer/submission-queue.ts";
import type { Checked, Lane, Waiting } from "./context.ts";
import type { Expense, GasBudget } from "./gas-budget.ts";
import type { ProvenSignature, ReadPayment } from "./intake.ts";
import type { Turn } from "./turns.ts";

/** What it takes besides the payment. */
export type ClaimOptions = Waiting & { gasBudget: GasBudget; turn: Turn; ways: WaysToPay };

/** A payment whose signature holds, and for whom it is to be claimed. */
export type Claimant = Pick<ReadPayment, "payment"> &
  Lane &
  ProvenSignature & {
    identifier: BoundIdentifier | undefined;
    caller: Caller;
    recipient: Address;
    checked: Checked;
  };

/** Between two checks of a payment whose balance is taken up by settlements under way. */
const balancePollMs = 50;

/**
 * Checks a payment against the chain, and has the relayer claim and send it. Undefined once it is in the ledger.
 *
 * A balance that is taken up by settlements under way is looked at again for two block times: one that was mined just
 * now is counted twice, in the balance and in the reservation, until its receipt has been read.
 *
 * @throws UndeterminedError when the result cannot be determined or the payment cannot be sent, GasBudgetError when the
 * organization's gas budget does not cover it; in both cases nothing was signed.
 */
export async function claimPayment(claimant: Claimant, options: ClaimOptions): Promise<Invalid | undefined> {
  const { payment, identifier, chain, relayer, signature, caller, recipient, checked } = claimant;
  const { signed, network } = payment;
  const { now, deadline, signal, gasBudget, turn, ways } = options;
  const settling = ways.settlingOf(signed.method);
  const call: SettleCall = { payment: { ...signed, signature }, recipient, id: payment.id };
  const transaction = settling.transaction([call], network);
  let takenUp: Invalid | undefined;
  let balanceDeadline = Math.min(deadline, now() + 2 * network.blockTimeMs);

  const ended = await poll(tryToClaim, {
    every: balancePollMs,
    until: () => now() >= balanceDeadline,
    signal,
  });
  if (signal.aborted && ended === undefined) throw new UndeterminedError("The caller left; nothing was sent");
  const refusal = ended ?? takenUp;
  if (refusal === undefined) throw new UndeterminedError(behind(network));
  return refusal === "claimed" ? undefined : refusal;

  /** Undefined while settlements under way take up the balance, or it was read before they were mined. */
  async function tryToClaim(): Promise<Invalid | "claimed" | undefined> {
    const readAt = now();
    const { head, revert, funds, payerCode } = await chain.simulate(transaction, {
      payer: signed.payer,
      asset: signed.asset,
      withFunds: true,
      id: payment.id,
    });
    const outsideWindow = checked("windowIsOpen", checkValidityWindow(signed, head.timestamp, chain.network));
    if (outsideWindow !== undefined) return outsideWindow;
    const reverts = checked("simulationSucceeds", revert && (await settling.explain(chain, call, revert)));
    if (reverts !== undefined) return reverts;
    if (funds === undefined || payerCode === undefined) throw new Error("the funds were not read");
    const refused = refusedForCode(caller.organization.limits[network.name], signed.payer, payerCode);
    if (checked("payerIsAccepted", refused) !== undefined) return refused;
    requireGasMoney(transaction.gas, network, head, funds);
    if (await turn.take(payerCode, options)) {
      balanceDeadline = Math.min(deadline, now() + 2 * network.blockTimeMs);
      return tryToClaim();
    }

    const submission: Submission = {
      claim: {
        id: payment.id,
        organizationId: caller.organization.id,
        network: network.name,
        chainId: network.chainId,
        method: signed.method,
        asset: signed.asset,
        payer: signed.payer,
        payerCode,
        nonce: signed.nonce,
        nonceSpace: signed.nonceSpace,
        digest: payment.digest,
        amount: signed.limit,
        window: signed.window,
        payload: signed.payload,
        signature,
        recipient,
        balance: funds.payer,
        balanceBlock: head.number,
        ...(identifier && { identifier }),
      },
      call,
      head,
      tip: funds.tip,
      gasMoney: funds.operator,
      sendBefore: readAt + Number(signed.window.last + 1n - expiryMarginSeconds - head.timestamp) * 1000,
      deadline,
      signal,
    };
    const { maxFeePerGas } = estimateFees(head, network, funds.tip);
    const expense: Expense = {
      payer: payerCode === null ? "plain" : "withCode",
      // Code may use all that a transaction allows it.
      cost: { withCode: transaction.gas * maxFeePerGas, plain: settling.usual.gas * maxFeePerGas },
    };
    const outcome = await gasBudget.within(caller, network, expense, () => relayer.submit(submission));
    switch (outcome) {
      case "claimed":
        relayer.health.worked();
        return "claimed";
      case "taken":
        return refusals.usedHere();
      case "identifier_reused":
        throw new IdentifierReusedError(problemDetails.identifierReused);
      case "expired":
        return invalid(
          "expired",
          "The authorization expired while the payment waited to be sent; nothing was sent",
        );
      case "withdrawn":
        throw new UndeterminedError(
          "The payment waited too long to be sent, behind others; nothing was sent, try again",
        );
      case "stale_balance":
        // Nothing can be said of a balance that may hold what other payments have taken since.
        takenUp = undefined;
        return undefined;
      case "over_balance":
        takenUp = refusals.balanceTakenUp(funds.payer, signed.limit);
        return undefined;
    }
  }
}

function behind({ name }: NetworkConfig): string {
  return `The node of ${name} does not show the newest settlements of this payer yet, so that its balance is not known; nothing was sent, try again`;
}

/**
 * A transaction without gas money behind it would be claimed and then go nowhere.
 *
 * @throws OperatorError: it says nothing of the payment.
 */
function requireGasMoney(gas: bigint, network: NetworkConfig, head: Head, { operator, tip }: Funds): void {
  const cost = gas * estimateFees(head, network, tip).maxFeePerGas;
  if (operator >= cost) return;
  throw new OperatorError("no gas money", {
    hints: [
      `The operator on ${network.name} has ${operator} wei, and one settlement may need ${cost}: send it native coins`,
    ],
  });
}
