import { isDecidedBy } from "../../../protocol/catalogue.ts";
import { countedAsEther, formatAmount } from "../../../protocol/token-units.ts";
import type { PaymentDetail } from "../../timeline/payment-view.ts";
import { Button, Menu } from "./controls.tsx";
import { statusOf } from "./format.ts";
import {
  act,
  activeFaults,
  ask,
  chains,
  clearFaults,
  copyText,
  harness,
  isLocal,
  tokenOf,
} from "./local-service.ts";
import { edit, freshTermsOf, pay } from "./pay-dialog.tsx";
import { localTokenOf, operationOf, scenarioOf, vitestOf } from "./snippets.ts";
import { toast } from "./toasts.tsx";

/** The actions that repeat a payment. */
export function Again({ payment, isMended }: { payment: PaymentDetail; isMended: boolean }) {
  const { signed, network, amount } = payment;
  // The mock has neither chains nor the routes that act on them.
  const canAct = isLocal.value && signed !== null;
  const fresh = freshTermsOf(payment);
  const operation = operationOf(payment);
  const status = statusOf(payment);
  // A payment that may still settle is sent again, never paid a second time.
  const isDecided = status !== "undecided" && status !== "open";
  return (
    <div class="again buttons">
      {canAct && isDecided && fresh !== undefined && (
        <Button
          class={isMended ? "" : "primary"}
          title="A new payment with the same terms, signed anew"
          onClick={() => pay(fresh)}
        >
          Pay again
        </Button>
      )}
      {canAct && (
        <Button title="The very same request, with the same signature" onClick={() => resend(payment)}>
          Repeat {operation}
        </Button>
      )}
      {canAct && network !== null && amount !== null && (
        <Button title="A new payment with other terms" onClick={() => edit(payment)}>
          Edit…
        </Button>
      )}
      <Menu title="Copy" items={copiesOf(payment)} />
    </div>
  );
}

/** The texts about a payment to copy for use elsewhere. */
function copiesOf(payment: PaymentDetail): { name: string; run(): unknown }[] {
  const { id, signed, payerName, network, amount, transaction } = payment;
  const copy = async (what: string, text: string) => {
    if (await copyText(text, what)) toast(`Copied ${what}.`);
  };
  const copyCurl = async () => {
    const answer = await ask(`/payments/${id}/curl`, { operation: operationOf(payment) });
    if (typeof answer?.curl === "string") await copy("the command", answer.curl);
  };
  const canAct = isLocal.value && signed !== null;
  const scenario = signed === null ? undefined : scenarioOf(payment);
  const contract = harness.value?.networks[network ?? ""]?.facilitatorContract;
  const isKnown = signed !== null && payerName !== null && network !== null && amount !== null;
  const isTest = isKnown && isRepeatable(payment);
  return [
    ...(canAct ? [{ name: "Copy as curl", run: copyCurl }] : []),
    ...(isTest ? [{ name: "Copy as test", run: () => copy("the test", vitestOf(payment, contract)) }] : []),
    ...(scenario === undefined
      ? []
      : [{ name: "Copy scenario", run: () => copy("the scenario's name", scenario) }]),
    { name: "Copy link", run: () => copy("the link", location.href) },
    { name: "Copy id", run: () => copy("the id", id) },
    ...(transaction === null
      ? []
      : [{ name: "Copy transaction", run: () => copy("the transaction's hash", transaction) }]),
  ];
}

/** Payers with a key of their own, whose signatures are correct in every test. */
const signers: readonly (string | null)[] = ["funded", "empty", "blacklisted"];

/** True if the same payer's next payment ends the same way. Not if a signature was refused that would be correct in a test. */
function isRepeatable({ verify, settle, payerName }: PaymentDetail): boolean {
  const isOfSignature = [verify, settle].some(
    (view) => view !== null && isDecidedBy(view, "signature", "code"),
  );
  return !isOfSignature || !signers.includes(payerName);
}

/** A button that fixes a refused payment on a local chain. */
export type Fix = { label: string; run(): Promise<unknown> };

const ofBalance = /^(insufficient_funds|permit2_insufficient_balance)$/;

/** True if the payment's times are wrong, so that it needs a new signature. */
function isOfTimes({ mistake, situation }: PaymentDetail["explanations"][number]): boolean {
  return mistake === "times-in-milliseconds" || isDecidedBy({ situation, reason: mistake }, "time");
}

/** True if the payer's balance is too low. */
export function isOfBalance({ explanations }: PaymentDetail): boolean {
  return explanations.some(({ mistake }) => ofBalance.test(mistake));
}

/** Sends exactly the same request again. */
function resend(payment: PaymentDetail): Promise<boolean> {
  const operation = operationOf(payment);
  return act(`/payments/${payment.id}/again`, { operation }, `Sent the same ${operation} again.`);
}

/** The fix for a refused payment; undefined if none is known, or it cannot be made from here. */
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
          units: true,
          asset: localTokenOf(payment),
        };
        if ((await ask("/harness/approve", body)) !== undefined) await pay(fresh, "Approved. ");
      },
    };
  }
  if (statusOf(payment) === "undecided" || mistakes.includes("answer-lost")) {
    // Never make a new payment: this one may still settle.
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
  if (explanations.some(isOfTimes)) {
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
  // An absurd price is a mistake in the shop; do not fund it.
  if (amount === null || countedAsEther(BigInt(amount), token) !== undefined) return undefined;
  const asset = localTokenOf(payment);
  // The balances are in the network's default token only.
  const balances = chains.value.find((chain) => chain.network === network)?.balances;
  const known = new Map(Object.entries(balances ?? {}));
  const held = asset === undefined ? BigInt(known.get(payerName ?? "") ?? 0) : 0n;
  const missing = BigInt(amount) - held;
  const fresh = freshTermsOf(payment);
  if (missing <= 0n) return fresh && { label: "Pay again", run: () => pay(fresh) };
  const funds = formatAmount(missing, token);
  const again = fresh === undefined ? "send it again" : "pay again";
  return {
    label: `Fund ${funds} and ${again}`,
    async run() {
      const body = { network, to: payer, amount: `${missing}`, units: true, asset };
      if ((await ask("/harness/fund", body)) === undefined) return;
      if (fresh === undefined) await resend(payment);
      else await pay(fresh, `${payerName} has ${funds} more. `);
    },
  };
}
