import type { PaymentDetail } from "../payment-view.ts";
import { Button, Menu } from "./controls.tsx";
import { resend } from "./fix.ts";
import { ask, command, copyText, harness, isLocal } from "./local-service.ts";
import { edit, freshTermsOf, pay } from "./pay-from-page.ts";
import { statusOf } from "./payment-status.ts";
import { operationOf, scenarioOf, vitestOf } from "./snippets.ts";
import { toast } from "./toasts.tsx";

/** What can be done with a payment once more. */
export function Again({ payment, isMended }: { payment: PaymentDetail; isMended: boolean }) {
  const { signed, network, amount } = payment;
  // The mock has neither chains nor the routes that act on them.
  const canAct = isLocal.value && signed !== null;
  const fresh = freshTermsOf(payment);
  const operation = operationOf(payment);
  const status = statusOf(payment);
  // One that may still settle is sent again, and not paid a second time.
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

/** What can be had of a payment for elsewhere. */
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
    ...(canAct ? [{ name: "Capture to a file", run: () => capture(id) }] : []),
  ];
}

/** Payers that sign with a key of their own, and so rightly in every test. */
const signers: readonly (string | null)[] = ["funded", "empty", "blacklisted"];

/** Whether the same payer's next payment has the same end: not where a signature was refused that is right in a test. */
function isRepeatable({ verify, settle, payerName }: PaymentDetail): boolean {
  const isOfSignature = [verify, settle].some(
    (view) =>
      view?.reason === "invalid_exact_evm_payload_signature" || view?.reason === "invalid_permit2_signature",
  );
  return !isOfSignature || !signers.includes(payerName);
}

/** Has the browser save everything that the payment was judged by. */
async function capture(id: string): Promise<void> {
  const answer = await ask(`/payments/${id}/capture`, {});
  if (answer === undefined) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([JSON.stringify(answer, null, 2)], { type: "application/json" }));
  link.download = "bug.x402.json";
  link.click();
  URL.revokeObjectURL(link.href);
  const cut = answer.signature === "cut" ? "Without the signature, since this is no test payer. " : "";
  toast(`${cut}Judge it again, on any machine: ${command} replay bug.x402.json`);
}
