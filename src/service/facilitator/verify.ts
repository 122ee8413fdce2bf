import type { Settlement } from "../../ledger/settlement.ts";
import type { SettleCall } from "../../methods/on-chain/settling.ts";
import { type Invalid, withReasonOfMethod } from "../../protocol/catalogue.ts";
import { checkValidityWindow } from "../../protocol/checks.ts";
import type { MaximaAccount, Maximum, OpenMaxima } from "../../protocol/open-maxima.ts";
import { refusals } from "../../protocol/refusals.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { codeToCome } from "../../protocol/signed-payment.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { type Caller, type Organization, refusedForCode } from "../organizations/organizations.ts";
import { type FacilitatorContext, publishChecksOf } from "./context.ts";
import { refuseClosed, refuseWithUse } from "./earlier-use.ts";
import { bindingOf, hasPaid, isBound } from "./idempotent.ts";
import {
  createPaymentIntake,
  isClaimedAs,
  notServed,
  type SettleablePayment,
  withOperator,
} from "./intake.ts";
import { checkGasMoney, explainFailure, prepareCall, unlessMined } from "./payer-transaction.ts";

/**
 * Checks a payment: undefined when it is valid. Throws when that cannot be determined.
 *
 * `repeats`: a payment that was settled under its identifier is valid, since settle gives its success again.
 */
export type Verify = (
  request: PaymentRequest,
  caller: Caller | null,
  options?: { repeats: boolean },
) => Promise<Invalid | undefined>;

/**
 * Makes verify: the pure checks, the signature, the ledger, and then the chain, which runs the real `settle` by
 * `eth_call`. A payer without code costs one request to the chain.
 *
 * `caller` is null where verify is open to callers without a key. A caller whose organization has no recipient on
 * the network gets the default: the payer stands in as recipient in the simulation.
 */
export function createVerify(context: FacilitatorContext, maxima: OpenMaxima): Verify {
  const { recoveries, ledger, ways, serviceId } = context;
  const intake = createPaymentIntake(context);

  return async (request, caller, { repeats } = { repeats: false }) => {
    const refusal = await judge(request, caller, repeats);
    const answered = refusal && (await refuseWithUse(context, refusal, request, caller?.organization.id));
    return withReasonOfMethod(answered, request.words);
  };

  async function judge(
    request: PaymentRequest,
    caller: Caller | null,
    repeats: boolean,
  ): Promise<Invalid | undefined> {
    const checked = publishChecksOf(request, serviceId);
    const read = await intake(request, "verify", caller, checked);
    if ("reason" in read) return read;
    const { payment, lanes, signature, recipient } = read;
    const organizationId = caller?.organization.id;
    const isIdentified =
      organizationId !== undefined && (await isBound(ledger, organizationId, bindingOf(request, payment)));
    const settlement = await ledger.claims.find(payment.id);
    if (settlement !== null) {
      const isRepeated =
        repeats && isIdentified && hasPaid(settlement) && isOwn(settlement, payment, organizationId);
      const followUp = isOwnFailure(settlement, payment, organizationId)
        ? await recoveries.get(payment.network.name)?.known(payment.id)
        : undefined;
      const isOpen =
        isRepeated ||
        isOpenTo(settlement, payment, organizationId) ||
        followUp?.outcome === "under_way" ||
        followUp?.outcome === "recovered";
      const closed = isOpen ? undefined : refuseClosed(settlement, organizationId, followUp);
      return checked("authorizationIsFree", closed);
    }
    checked("authorizationIsFree", undefined);
    if (lanes === undefined) throw notServed(payment.network.name);

    const { signed, network } = payment;
    const settling = ways.settlingOf(signed.method);
    const asked: SettleCall = {
      payment: { ...signed, signature },
      recipient: recipient ?? signed.payer,
      id: payment.id,
    };
    return withOperator(lanes, async ({ chain, sponsor }) => {
      const call = await prepareCall(settling, { chain, sponsor }, asked);
      if ("reason" in call) return checked("simulationSucceeds", call);
      const transaction = settling.transaction([call], network);
      const effect = settling.effect?.(call, network);
      const limits = caller?.organization.limits[network.name];
      const before = settling.before?.(call);
      const bringsApproval = settling.bringsApproval?.(call.payment) ?? false;
      const simulation = await chain.simulate(transaction, {
        payer: signed.payer,
        asset: signed.asset,
        // What is verified is counted against them.
        withFunds: payment.takesLess && caller !== null,
        bounds: bringsApproval ? undefined : settling.bounds?.(call.payment),
        withPayerCode: payment.takesLess || before !== undefined || (limits?.refusePayersWithCode ?? false),
        effect,
        before,
        id: payment.id,
      });
      const { head, funds, payerCode } = simulation;
      const outsideWindow = checked(
        "windowIsOpen",
        checkValidityWindow(request, head.timestamp, chain.network),
      );
      if (outsideWindow !== undefined) return outsideWindow;
      const failure = explainFailure(settling, chain, call, simulation);
      const fails =
        (failure && (await failure)) ??
        (before &&
          (await checkGasMoney(before, { chain, sponsor, asset: signed.asset, payerCode, organizationId })));
      const isMined =
        fails !== undefined &&
        before !== undefined &&
        !("reason" in (await unlessMined(fails, settling, chain, asked)));
      // It was mined in between, for another payment: what is known is of no use then.
      if (isMined) throw new UndeterminedError("The payer's approval was mined just now; try again");
      if (checked("simulationSucceeds", fails) !== undefined) return fails;
      const code = payerCode ?? codeToCome(signature);
      const refused = checked("payerIsAccepted", refusedForCode(limits, signed.payer, code));
      if (refused !== undefined || funds === undefined || caller === null) return refused;
      const uncovered = await findUncovered(payment, caller, {
        id: payment.id,
        limit: signed.limit,
        last: signed.window.last,
        bringsApproval,
        available: funds.payer,
        now: head.timestamp,
      });
      return checked("maximumIsCovered", uncovered);
    });
  }

  /** Why a maximum is not covered together with those that this organization has verified. */
  async function findUncovered(
    payment: SettleablePayment,
    { organization }: Caller,
    maximum: Maximum,
  ): Promise<Invalid | undefined> {
    const account = accountOf(payment, organization);
    const others = maxima.open(account, maximum);
    if (others === undefined) return undefined;
    // Another instance may have settled them.
    const settlements = await Promise.all(others.ids.map((id) => ledger.claims.find(id)));
    for (const settlement of settlements) if (settlement !== null) maxima.close(account, settlement.id);
    const tooMany = maxima.open(account, maximum);
    return tooMany && refusals.maximaTooMany(maximum.available, maximum.limit, tooMany, payment.asset);
  }
}

/** Whose maxima are counted together. */
export function accountOf(
  { network, signed }: SettleablePayment,
  { id }: Pick<Organization, "id">,
): MaximaAccount {
  return { organizationId: id, network: network.name, asset: signed.asset, payer: signed.payer };
}

/**
 * Returns true if a settle of this payment by this organization may still answer with a success: it is theirs, and its
 * outcome is open or was never handed over. Public servers verify again before they settle again.
 */
export function isOpenTo(
  settlement: Settlement,
  payment: SettleablePayment,
  organizationId: string | undefined,
): boolean {
  if (!isOwn(settlement, payment, organizationId)) return false;
  return settlement.state !== "failed" && settlement.deliveredAt === null;
}

/** Returns true if it is theirs and has failed, so that it may become a success only by being recovered. */
export function isOwnFailure(
  settlement: Settlement,
  payment: SettleablePayment,
  organizationId: string | undefined,
): boolean {
  return isOwn(settlement, payment, organizationId) && settlement.state === "failed";
}

/** Returns true if a settlement is of this very payment and organization, however much of it was taken. */
export function isOwn(
  settlement: Settlement,
  payment: SettleablePayment,
  organizationId: string | undefined,
): boolean {
  return settlement.organizationId === organizationId && isClaimedAs(settlement, payment);
}
