import { signal } from "@preact/signals";
import { forTimes, type PaymentTimes, type TimeField } from "../../../methods/exact-eip3009/payment-times.ts";
import { formatUnits } from "../../../protocol/token-units.ts";
import type { PaymentDetail, PaymentSummary } from "../payment-view.ts";
import { usualTime, writeFromNow } from "./format.ts";
import { ask, get, harness, tokenOf } from "./local-service.ts";
import { select } from "./page-route.ts";
import { knowsPayment } from "./payment-stream.ts";
import { localTokenOf, type PayKind, payKindOf, payTermsOf, requestTimeOf, signedTimes } from "./snippets.ts";
import { toast } from "./toasts.tsx";

/** The payment in the dialog, as it is typed. */
type Draft = Record<"network" | "payer" | "amount" | "x402Version", string> & {
  /** The token's name; empty for the network's own. */
  asset: string;
  kind: PayKind;
  times: PaymentTimes<string>;
};

export const draft = signal<Draft>({
  network: "",
  payer: "funded",
  amount: "0.01",
  kind: "eip3009",
  asset: "",
  x402Version: "2",
  times: forTimes(usualTime),
});

export const isPayOpen = signal(false);

/** What `POST /harness/pay` is asked. */
export type PayTerms = { network: string; payer: string } & Record<string, unknown>;

/** The newest payments that are looked through for one that was just made. */
const mostLooked = 50;

/** Pays as a test payer, says what came of it after what was done before, and shows the new payment. */
export async function pay(terms: PayTerms, before = ""): Promise<void> {
  const isOld = knowsPayment();
  const answer = await ask("/harness/pay", terms);
  if (answer === undefined) return;
  const settle = Object(answer.settle) as Record<string, unknown>;
  const isSettled = settle.success === true;
  const outcome = isSettled
    ? "Paid and settled."
    : `Not settled: ${settle.errorReason ?? "the outcome is not known"}.`;
  toast(`${before}${outcome}`, { isError: !isSettled });
  const list = await get<{ payments: PaymentSummary[] }>(`/payments?limit=${mostLooked}`);
  const made = list?.payments.find(
    ({ id, network, payerName }) => !isOld(id) && network === terms.network && payerName === terms.payer,
  );
  if (made !== undefined) select(made.id);
}

/** A payment with the same terms as this one that is signed anew; undefined where it was no test payer's. */
export function freshTermsOf(payment: PaymentDetail): PayTerms | undefined {
  const { signed, payerName: payer, network, amount, x402Version } = payment;
  if (signed === null || payer === null || network === null || amount === null) return undefined;
  // Where payments go to the contract alone, another one is a mistake that is not made again.
  const payTo = harness.value?.payToPolicy === undefined ? undefined : payment.required?.payTo;
  const asset = localTokenOf(payment);
  return { network, payer, payTo, asset, ...payTermsOf(payKindOf(payment), amount, x402Version ?? 1) };
}

/** Opens the dialog with the terms of a payment. */
export function edit(payment: PaymentDetail): void {
  const { network, payerName, amount, token, x402Version } = payment;
  if (network === null || amount === null) return;
  const { seconds } = requestTimeOf(payment);
  draft.value = {
    network,
    payer: payerName ?? "funded",
    amount: formatUnits(amount, (token ?? tokenOf(network)).decimals),
    kind: payKindOf(payment),
    asset: localTokenOf(payment) ?? "",
    x402Version: String(x402Version ?? 1),
    times: forTimes((field) => timeOf(timeIn(payment, field), seconds) ?? usualTime(field)),
  };
  isPayOpen.value = true;
}

function timeIn(payment: PaymentDetail, { name }: TimeField): string | undefined {
  return signedTimes(payment).find(({ field }) => field === name)?.value;
}

const aYear = 31_536_000;

/**
 * A signed time as the form has it: as far from the chain's time as it was at the request, in unix seconds; 0, and what
 * is far off, as it is.
 */
function timeOf(signed: string | undefined, requestedAt: number): string | undefined {
  const seconds = Number(signed);
  if (signed === undefined || !Number.isSafeInteger(seconds)) return undefined;
  const ahead = seconds - requestedAt;
  return Math.abs(ahead) > aYear ? signed : writeFromNow(ahead);
}
