import { forTimes, type TimeField } from "../../../methods/exact-eip3009/payment-times.ts";
import { formatUnits } from "../../../protocol/token-units.ts";
import type { PaymentDetail } from "../payment-view.ts";
import { Button } from "./controls.tsx";
import { usualTime, writeFromNow } from "./format.ts";
import { payKindOf, payTermsOf, requestTimeOf, scenarioOf, signedTimes, vitestOf } from "./snippets.ts";
import {
  act,
  ask,
  command,
  copyText,
  draft,
  harness,
  isLocal,
  notice,
  pay,
  place,
  tokenOf,
} from "./state.ts";

/** What can be done with a payment once more. */
export function Again({ payment }: { payment: PaymentDetail }) {
  const { id, signed, payerName: payer, network, amount, token } = payment;
  // Of a request that held no payment there is nothing to send.
  if (signed === null) return null;
  // The mock has neither chains nor the routes that act on them.
  const canAct = isLocal.value;
  const operation = payment.settle === null ? "verify" : "settle";
  const x402Version = payment.x402Version ?? 1;
  const scenario = scenarioOf(payment);
  const kind = payKindOf(payment);
  const { payToPolicy, networks = {} } = harness.value ?? {};
  const contract = networks[network ?? ""]?.facilitatorContract;
  // Where payments go to the contract alone, another one is a mistake that is not made again.
  const payTo = payToPolicy === undefined ? undefined : payment.required?.payTo;
  const again = () => act(`/payments/${id}/again`, { operation }, `Sent the same ${operation} again.`);
  const copyCurl = async () => {
    const answer = await ask(`/payments/${id}/curl`, { operation });
    if (typeof answer?.curl === "string") await copyText(answer.curl, "the command");
  };
  const isKnown = payer !== null && network !== null && amount !== null;
  return (
    <section class="again" aria-label="Do it again">
      <h3>Do it again</h3>
      <div class="buttons">
        {canAct && <Button onClick={again}>Same {operation}</Button>}
        {canAct && isKnown && (
          <Button onClick={() => pay({ network, payer, payTo, ...payTermsOf(kind, amount, x402Version) })}>
            Fresh
          </Button>
        )}
        {canAct && network !== null && amount !== null && (
          <Button
            onClick={() => {
              const { seconds } = requestTimeOf(payment);
              draft.value = {
                network,
                payer: payer ?? "funded",
                amount: formatUnits(amount, (token ?? tokenOf(network)).decimals),
                kind,
                x402Version: String(x402Version),
                times: forTimes((field) => timeOf(timeIn(payment, field), seconds) ?? usualTime(field)),
              };
              place.value = "payments";
              notice.value = "The form holds this payment now: change what you like, then Pay.";
              document.getElementById("amount")?.focus();
            }}
          >
            Edit…
          </Button>
        )}
        {canAct && <Button onClick={copyCurl}>Copy as curl</Button>}
        {canAct && <Button onClick={() => capture(id)}>Capture to a file</Button>}
        {isKnown && isRepeatable(payment) && (
          <Button onClick={() => copyText(vitestOf(payment, contract), "the test")}>Copy as test</Button>
        )}
        {scenario !== undefined && (
          <Button onClick={() => copyText(scenario, "the scenario's name")}>Copy scenario</Button>
        )}
      </div>
    </section>
  );
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
  notice.value = `${cut}Judge it again, on any machine: ${command} replay bug.x402.json`;
}
