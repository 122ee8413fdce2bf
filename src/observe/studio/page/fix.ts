import { countedAsEther, formatAmount } from "../../../protocol/token-units.ts";
import type { PaymentDetail } from "../payment-view.ts";
import { act, activeFaults, ask, chains, clearFaults, isLocal, tokenOf } from "./local-service.ts";
import { freshTermsOf, pay } from "./pay-from-page.ts";
import { statusOf } from "./payment-status.ts";
import { localTokenOf, operationOf } from "./snippets.ts";

/** What mends a refused payment on a local chain, as one button. */
export type Fix = { label: string; run(): Promise<unknown> };

const ofBalance = /^(insufficient_funds|permit2_insufficient_balance)$/;
const ofTimes =
  /^(expired|not-valid-yet|valid-too-long|times-in-milliseconds|permit2_deadline_expired|.*valid_(before|after))$/;

/** Whether the payer has too little. */
export function isOfBalance({ explanations }: PaymentDetail): boolean {
  return explanations.some(({ mistake }) => ofBalance.test(mistake));
}

/** Sends the very request again. */
export function resend(payment: PaymentDetail): Promise<boolean> {
  const operation = operationOf(payment);
  return act(`/payments/${payment.id}/again`, { operation }, `Sent the same ${operation} again.`);
}

/** What mends what is wrong with a payment; undefined where that is not known, or cannot be done from here. */
export function fixOf(payment: PaymentDetail): Fix | undefined {
  const { signed, explanations, network } = payment;
  // The mock has neither chains nor the routes that act on them.
  if (!isLocal.value || signed === null || network === null || explanations.length === 0) return undefined;
  const mistakes = explanations.map(({ mistake }) => mistake);
  const fresh = freshTermsOf(payment);
  if (isOfBalance(payment)) return fundingOf(payment, network);
  if (mistakes.includes("permit2_allowance_required") && fresh !== undefined) {
    return {
      label: "Approve Permit2 and pay again",
      async run() {
        const body = {
          network,
          account: payment.payer,
          amount: payment.amount,
          asset: localTokenOf(payment),
        };
        if ((await ask("/harness/approve", body)) !== undefined) await pay(fresh, "Approved. ");
      },
    };
  }
  if (statusOf(payment) === "undecided" || mistakes.includes("answer-lost")) {
    // Never a new one: this one may still be settled.
    if (activeFaults.value.length === 0) return { label: "Send it again", run: () => resend(payment) };
    return {
      label: "End the faults and send it again",
      async run() {
        await clearFaults();
        await resend(payment);
      },
    };
  }
  if (fresh === undefined) return undefined;
  if (mistakes.some((mistake) => ofTimes.test(mistake))) {
    return { label: "Sign it anew and pay", run: () => pay(fresh) };
  }
  if (explanations[0]?.at === "authorization.nonce") {
    return { label: "Pay with a new nonce", run: () => pay(fresh) };
  }
  return undefined;
}

function fundingOf(payment: PaymentDetail, network: string): Fix | undefined {
  const { amount, payer, payerName } = payment;
  const token = payment.token ?? tokenOf(network);
  // A price that nobody means is not paid for by funding.
  if (amount === null || countedAsEther(BigInt(amount), token) !== undefined) return undefined;
  const asset = localTokenOf(payment);
  // Of the network's own token alone.
  const balances = chains.value.find((chain) => chain.network === network)?.balances;
  const held = asset === undefined ? BigInt(balances?.[payerName ?? ""] ?? 0) : 0n;
  const missing = BigInt(amount) - held;
  const fresh = freshTermsOf(payment);
  if (missing <= 0n) return fresh && { label: "Pay again", run: () => pay(fresh) };
  const funds = formatAmount(missing, token);
  const again = fresh === undefined ? "send it again" : "pay again";
  return {
    label: `Fund ${funds} and ${again}`,
    async run() {
      const body = { network, to: payer, amount: `${missing}`, asset };
      if ((await ask("/harness/fund", body)) === undefined) return;
      if (fresh === undefined) await resend(payment);
      else await pay(fresh, `${payerName} has ${funds} more. `);
    },
  };
}
