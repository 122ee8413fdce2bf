import type { Chain, Funds, Transaction } from "../../chain/chain.ts";
import { estimateFees } from "../../chain/fees.ts";
import type { Head } from "../../chain/rpc/calls.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Claim } from "../../ledger/settlement.ts";
import type { Plan, SettleCall, Settling } from "../../methods/on-chain/settling.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { type Invalid, invalid } from "../../protocol/catalogue.ts";
import { checkValidityWindow } from "../../protocol/checks.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import { problemDetails } from "../../protocol/problems.ts";
import { expiryMarginSeconds, refusals } from "../../protocol/refusals.ts";
import { fingerprintOf, goesStraight, type SignedPayment } from "../../protocol/signed-payment.ts";
import { IdentifierReusedError, OperatorError, UndeterminedError } from "../../util/errors.ts";
import { poll } from "../../util/waiting.ts";
import type { Caller } from "../organizations/organizations.ts";
import type { Submission } from "../relayer/submission-queue.ts";
import type { ApprovalWaits } from "./approval-waits.ts";
import { askChain, type Seen } from "./ask-chain.ts";
import type { Lane, Waiting } from "./context.ts";
import type { Examined } from "./examine.ts";
import type { Expense, GasBudget } from "./gas-budget.ts";
import { type GiveGasMoney, planToSettle } from "./payer-transaction.ts";
import { codesOf } from "./payment.ts";
import type { Turn } from "./revert-delays.ts";
import type { GiftAccount } from "./sponsor.ts";

/** Everything a settle needs besides the payment. */
export type ClaimOptions = Waiting & {
  gasBudget: GasBudget;
  turn: Turn;
  waits: ApprovalWaits;
  ways: WaysToPay;
  ledger: Pick<Ledger, "claims">;
};

/** An examined payment that can be claimed: its caller and its recipient are known. */
export type Claimant = Examined & { caller: Caller; recipient: Address };

/** Between two checks of a payment whose balance is reserved by settlements in flight. */
const balancePollMs = 50;

/**
 * Checks a payment against the chain, and has the relayer claim and send it. Returns undefined once it is in the ledger.
 *
 * If settlements in flight have reserved the balance, it is checked again for two block times: until the receipt of a
 * just-mined settlement has been read, its amount is counted twice, in the balance and in the reservation.
 *
 * @throws UndeterminedError when the result cannot be determined or the payment cannot be sent, GasBudgetError when the
 * organization's gas budget does not cover it; in both cases nothing was signed.
 */
export async function claimPayment(
  claimant: Claimant,
  { chain, sponsor, relayer }: Lane,
  options: ClaimOptions,
): Promise<Invalid | undefined> {
  const { request, payment, signature, caller, recipient, trail } = claimant;
  const { signed, network } = payment;
  const { now, deadline, signal, gasBudget, turn, ways } = options;
  const settling = ways.settlingOf(signed.method);
  const { amount } = payment;
  const codes = codesOf(request, network);
  const price = payment.requirements.amount;
  const asked: SettleCall = {
    payment: { ...signed, signature },
    recipient,
    id: payment.id,
    amount,
    price,
    codes,
  };
  const planned = await planToSettle(settling, { chain, sponsor }, asked, {
    ...options,
    organizationId: caller.organization.id,
    check: checkFirst,
  });
  if ("reason" in planned) return trail.refuse("simulationSucceeds", planned);
  if (planned.settledBy !== undefined) return claimSettled(claimant, chain, planned, options);
  // TypeScript would not narrow `planned` in the functions below.
  const plan: Plan = planned;
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

  /** Returns the chain's view of the payment if it can be claimed, otherwise the refusal. */
  async function look(plan: Plan): Promise<Invalid | (Seen & { funds: Funds })> {
    const { bounds } = plan;
    const seen = await askChain(claimant, chain, settling, plan, { withFunds: true, bounds });
    if ("reason" in seen) return seen;
    const { head, funds } = seen;
    if (funds === undefined) throw new Error("the funds were not read");
    requireGasMoney(plan.transaction.gas, network, head, funds);
    return { ...seen, funds };
  }

  /** The maximum cost of the payment. */
  function expenseOf(
    { transaction, call }: Plan,
    { head, funds, payerCode }: Seen & { funds: Funds },
  ): Expense {
    const { maxFeePerGas } = estimateFees(head, network, funds.tip);
    return {
      payer: payerCode === null ? "plain" : "withCode",
      cost: costOf(settling, transaction, maxFeePerGas, settling.gasOf?.(call)),
    };
  }

  /** Decides if the payment justifies sending its payer's transaction, and who pays for missing gas. */
  async function checkFirst(plan: Plan): Promise<Invalid | GiveGasMoney> {
    const seen = await look(plan);
    if ("reason" in seen) return seen;
    const expense = expenseOf(plan, seen);
    await gasBudget.require(caller, network, expense);
    // A payer with code could keep the gift.
    if (sponsor === undefined || seen.payerCode !== null) return async () => false;
    const { asset, payer } = signed;
    // Charged together with the settlement, which might otherwise be left without a budget.
    const account: GiftAccount = {
      organizationId: caller.organization.id,
      within: (gift, give) => gasBudget.within(caller, network, { ...expense, gift }, give),
    };
    return (lack) => sponsor.give({ asset, payer }, lack, account);
  }

  /** Returns undefined while settlements in flight reserve the balance, or if it was read before they were mined. */
  async function tryToClaim(): Promise<Invalid | "claimed" | undefined> {
    const readAt = now();
    const seen = await look(plan);
    if ("reason" in seen) return seen;
    const { head, funds, payerCode } = seen;
    if (await turn.take(payerCode, options)) {
      balanceDeadline = Math.min(deadline, now() + 2 * network.blockTimeMs);
      return tryToClaim();
    }

    const channels = settling.channels?.recordOf?.(plan.call, network);
    const submission: Submission = {
      claim: {
        ...claimOf(claimant, plan.call.payment, payerCode),
        ...(channels && { channels }),
        balance: funds.payer,
        balanceBlock: head.number,
      },
      call: plan.call,
      head,
      tip: funds.tip,
      gasMoney: funds.operator,
      sendBefore: readAt + Number(signed.window.last + 1n - expiryMarginSeconds - head.timestamp) * 1000,
      deadline,
      signal,
    };
    const outcome = await gasBudget.within(caller, network, expenseOf(plan, seen), () =>
      relayer.submit(submission),
    );
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
        // The balance may be stale: other payments may have spent it since it was read.
        takenUp = undefined;
        return undefined;
      case "over_balance":
        takenUp = refusals.balanceTakenUp(funds.payer, amount, payment.asset);
        return undefined;
    }
  }
}

/** The maximum cost of a payment in wei, by kind of payer: code may use all gas that the transaction allows. */
function costOf(
  { usual }: Pick<Settling, "usual">,
  { gas }: Pick<Transaction, "gas">,
  maxFeePerGas: bigint,
  plainGas: bigint = usual.gas,
): Expense["cost"] {
  return { withCode: gas * maxFeePerGas, plain: plainGas * maxFeePerGas };
}

/**
 * Checks a payment of which nothing is to be taken, and records it in the ledger, so that a later request with the
 * same payment is too late although its nonce is unused. Neither balance nor approval matters. Returns undefined
 * once it is recorded.
 *
 * It is charged to the organization's gas budget like a plain payment: payers cost nothing to make, and each adds a
 * row for good.
 *
 * @throws GasBudgetError when the budget does not cover it; then nothing was claimed.
 */
export async function claimNothing(
  claimant: Claimant,
  { chain }: Lane,
  { ledger, ways, gasBudget }: { ledger: Pick<Ledger, "claims">; ways: WaysToPay; gasBudget: GasBudget },
): Promise<Invalid | undefined> {
  const { payment, signature, caller, recipient, trail } = claimant;
  const { signed, words, requirements, network } = payment;
  const settling = ways.settlingOf(signed.method);
  trail.publish();
  const [head, tip, isUsed] = await Promise.all([
    chain.head(),
    chain.suggestedTip(),
    settling.isUsed(chain, signed, payment.id),
  ]);
  const window = checkValidityWindow({ payment: signed, words, requirements }, head.timestamp, chain.network);
  if (window !== undefined) return trail.refuse("windowIsOpen", window);
  trail.pass("windowIsOpen");
  if (isUsed) return trail.refuse("simulationSucceeds", refusals.usedOnChain());
  trail.publish();
  const claim = claimOf(claimant, signed, null);
  const { maxFeePerGas } = estimateFees(head, network, tip);
  const calls = [{ payment: { ...signed, signature }, recipient, amount: 0n }];
  const cost = costOf(settling, settling.transaction(calls, network), maxFeePerGas);
  const outcome = await gasBudget.within(caller, network, { payer: "plain", cost }, () =>
    ledger.claims.claimNothing(claim, head.number, cost.plain),
  );
  return refuseUnclaimed(outcome);
}

/** The ledger's record of a payment. `payerCode` is the hash of the code at the payer's address, null if it has none. */
function claimOf(
  { payment: { id, network, digest, amount }, identifier, caller, recipient, signature }: Claimant,
  signed: SignedPayment,
  payerCode: Hex | null,
): Claim {
  const { method, asset, payer, nonce, nonceSpace, window, payload, limit } = signed;
  return {
    id,
    organizationId: caller.organization.id,
    network: network.name,
    chainId: network.chainId,
    method,
    asset,
    payer,
    payerCode,
    nonce,
    nonceSpace,
    window,
    payload,
    signature,
    recipient,
    amount,
    digest: fingerprintOf(digest, amount, limit),
    maximum: amount === limit ? null : limit,
    payTo: goesStraight(signed, network) ? signed.payTo : null,
    contract: network.facilitatorContract,
    ...(identifier && { identifier }),
  };
}

/**
 * Records a payment that somebody else's transaction has settled: it is a success like any other. Returns undefined
 * once it is recorded.
 *
 * @throws GasBudgetError when the organization's gas budget does not cover the row; then nothing was claimed.
 */
async function claimSettled(
  claimant: Claimant,
  chain: Chain,
  { call, settledBy }: Plan,
  { ledger, ways, gasBudget }: Pick<ClaimOptions, "ways" | "gasBudget" | "ledger">,
): Promise<Invalid | undefined> {
  const { payment, caller } = claimant;
  const [head, tip] = await Promise.all([chain.head(), chain.suggestedTip()]);
  const { maxFeePerGas } = estimateFees(head, payment.network, tip);
  const settling = ways.settlingOf(payment.signed.method);
  const cost = costOf(settling, settling.transaction([call], payment.network), maxFeePerGas);
  const channels = settling.channels?.recordOf?.(call, payment.network);
  const claim = { ...claimOf(claimant, call.payment, null), ...(channels && { channels }) };
  const outcome = await gasBudget.within(caller, payment.network, { payer: "plain", cost }, () =>
    ledger.claims.claimNothing(claim, head.number, 0n, settledBy),
  );
  return refuseUnclaimed(outcome);
}

/** Returns the refusal of a payment that was not claimed, if nothing has to be sent for it. */
function refuseUnclaimed(outcome: "claimed" | "taken" | "identifier_reused"): Invalid | undefined {
  switch (outcome) {
    case "claimed":
      return undefined;
    case "taken":
      return refusals.usedHere();
    case "identifier_reused":
      throw new IdentifierReusedError(problemDetails.identifierReused);
  }
}

function behind({ name }: NetworkConfig): string {
  return `The node of ${name} does not show the newest settlements of this payer yet, so that its balance is not known; nothing was sent, try again`;
}

/**
 * Without gas money the transaction would be claimed but never mined.
 *
 * @throws OperatorError if the operator lacks it: the payment itself may be fine.
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
