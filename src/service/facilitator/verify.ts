import type { Settlement } from "../../ledger/settlement.ts";
import type { SettleCall } from "../../methods/on-chain/settling.ts";
import { type Invalid, withReasonOfMethod } from "../../protocol/catalogue.ts";
import type { MaximaAccount, Maximum, OpenMaxima } from "../../protocol/open-maxima.ts";
import { refusals } from "../../protocol/refusals.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { hasPaid, isOpen, isOwn, refuseClosed } from "../../protocol/settlement-rules.ts";
import type { AnswerExtra } from "../../protocol/write-answers.ts";
import { UndeterminedError } from "../../util/errors.ts";
import type { Caller, Organization } from "../organizations/organizations.ts";
import { askChain } from "./ask-chain.ts";
import { refuseForeignChannel } from "./channel-owners.ts";
import type { FacilitatorContext, Lane } from "./context.ts";
import { refuseWithUse } from "./earlier-use.ts";
import { createExamine, type Examined } from "./examine.ts";
import { notServed, withOperator } from "./lanes.ts";
import { checkGasMoney, planPayment, unlessMined } from "./payer-transaction.ts";
import { codesOf, type SettleablePayment } from "./payment.ts";

/**
 * Checks a payment. Returns undefined if it is valid, or what its scheme adds to the answer. Throws when this
 * cannot be determined.
 *
 * `repeats`: a payment that was settled under its identifier is valid, since settle gives its success again.
 */
export type Verify = (
  request: PaymentRequest,
  caller: Caller | null,
  options?: { repeats: boolean },
) => Promise<Invalid | AnswerExtra | undefined>;

/**
 * Makes verify: it examines the payment, asks the ledger, and then the chain, which runs the real `settle` by
 * `eth_call`. A payer without code costs one request to the chain.
 *
 * `caller` is null if verify is open to callers without a key. If the caller's organization has no recipient on the
 * network, the payer stands in as recipient in the simulation.
 */
export function createVerify(context: FacilitatorContext, maxima: OpenMaxima): Verify {
  const { recoveries, ledger, ways } = context;
  const examine = createExamine(context);

  return async (request, caller, { repeats } = { repeats: false }) => {
    const verdict = await verify(request, caller, repeats);
    if (verdict === undefined || !("reason" in verdict)) return verdict;
    const answered = await refuseWithUse(context, verdict, request, caller?.organization.id);
    return withReasonOfMethod(answered, request);
  };

  async function verify(
    request: PaymentRequest,
    caller: Caller | null,
    repeats: boolean,
  ): Promise<Invalid | AnswerExtra | undefined> {
    const examined = await examine(request, "verify", caller);
    if ("reason" in examined) return examined;
    const { payment, lanes, trail } = examined;
    const settlement = await ledger.claims.find(payment.id);
    if (settlement !== null) {
      const closed = await refuseClaimed(examined, settlement, repeats);
      if (closed !== undefined) return trail.refuse("authorizationIsFree", closed);
    }
    trail.pass("authorizationIsFree");
    const verdict =
      settlement === null
        ? await withOperator(lanes ?? notServed(payment.network.name), (lane) => askAbout(examined, lane))
        : undefined;
    trail.publish();
    return verdict;
  }

  /** The refusal of a claimed payment; undefined if settle may still answer with its success. */
  async function refuseClaimed(
    { payment, caller, isIdentified }: Examined,
    settlement: Settlement,
    repeats: boolean,
  ): Promise<Invalid | undefined> {
    const organizationId = caller?.organization.id;
    if (!isOwn(settlement, payment, organizationId)) return refuseClosed(settlement, organizationId);
    if (isOpen(settlement) || (repeats && isIdentified && hasPaid(settlement))) return undefined;
    if (settlement.state !== "failed") return refuseClosed(settlement, organizationId);
    const followUp = await recoveries.get(payment.network.name)?.known(payment.id);
    const isFollowed = followUp?.outcome === "under_way" || followUp?.outcome === "recovered";
    return isFollowed ? undefined : refuseClosed(settlement, organizationId, followUp);
  }

  /** Plans a new payment, and asks the chain about it. */
  async function askAbout(examined: Examined, lane: Lane): Promise<Invalid | AnswerExtra | undefined> {
    const { request, payment, caller, signature, recipient, trail } = examined;
    const { chain, sponsor } = lane;
    const { signed } = payment;
    const { asset, payer } = signed;
    const settling = ways.settlingOf(signed.method);
    const owned = settling.channels?.ownedBy(signed, payment.network);
    const foreign = owned && (await refuseForeignChannel(ledger, owned, caller, payment.network));
    if (foreign !== undefined) return trail.refuse("payToIsOwn", foreign);
    const asked: SettleCall = {
      payment: { ...signed, signature },
      recipient: recipient ?? payer,
      id: payment.id,
      price: payment.requirements.amount,
      codes: codesOf(request, payment.network),
    };
    if (settling.judge !== undefined) {
      trail.publish();
      const judged = await settling.judge(chain, asked);
      return "reason" in judged ? trail.refuse("simulationSucceeds", judged) : judged;
    }
    const plan = await planPayment(settling, lane, asked);
    if ("reason" in plan) return trail.refuse("simulationSucceeds", plan);
    if (plan.settledBy !== undefined) return { extra: plan.extra };
    const { first, bringsApproval = false } = plan;
    const seen = await askChain(examined, chain, settling, plan, {
      // Verified maxima are counted against the payer's funds.
      withFunds: payment.takesLess && caller !== null,
      bounds: bringsApproval ? undefined : plan.bounds,
      withPayerCode: payment.takesLess || first !== undefined,
      async checkFirst(transaction, { payerCode }, refusal) {
        const organizationId = caller?.organization.id;
        const fails =
          refusal ?? (await checkGasMoney(transaction, { chain, sponsor, asset, payerCode, organizationId }));
        if (fails === undefined || "reason" in (await unlessMined(fails, settling, chain, asked)))
          return fails;
        // It was mined in between, for another payment, so the result of the simulation is useless.
        throw new UndeterminedError("The payer's approval was mined just now; try again");
      },
    });
    if ("reason" in seen) return seen;
    if (plan.extra !== undefined) return { extra: plan.extra };
    if (seen.funds === undefined || caller === null) return undefined;
    const uncovered = await findUncovered(payment, caller, {
      id: payment.id,
      limit: signed.limit,
      last: signed.window.last,
      bringsApproval,
      available: seen.funds.payer,
      now: seen.head.timestamp,
    });
    if (uncovered !== undefined) return trail.refuse("maximumIsCovered", uncovered);
    trail.pass("maximumIsCovered");
    return undefined;
  }

  /** Explains why the funds do not cover a maximum together with the others that this organization has verified. */
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

/** The account whose maxima are counted together. */
export function accountOf(
  { network, signed }: SettleablePayment,
  { id }: Pick<Organization, "id">,
): MaximaAccount {
  return { organizationId: id, network: network.name, asset: signed.asset, payer: signed.payer };
}
