import { useSignal } from "@preact/signals";
import type { PaymentDetail, TimelineEntry, TransactionView } from "../payment-view.ts";
import { Facts, Folded } from "./controls.tsx";
import { formatBoth, formatGwei } from "./format.ts";
import { coinOf } from "./local-service.ts";

/** What the service knows of the newest transaction that carried a payment. */
export function Transaction({ entries }: { entries: readonly TimelineEntry[] }) {
  const steps = entries.filter(({ kind }) => kind === "transaction");
  if (steps.length === 0) return null;
  const known: TimelineEntry["details"] = Object.assign({}, ...steps.map(({ details }) => details));
  const { succeeded } = known;
  return (
    <Folded title="Transaction">
      <Facts
        facts={{
          does: known.kind === "settle" ? `settle, for ${known.payments} at once` : known.kind,
          hash: known.transaction,
          "from operator": known.operator,
          txNonce: known.txNonce,
          "fee at most": formatGwei(known.maxFeePerGas),
          "tip at most": formatGwei(known.maxPriorityFeePerGas),
          "in block": known.blockNumber,
          "block hash": known.blockHash,
          succeeded: succeeded === undefined ? undefined : succeeded ? "yes" : "no, it was reverted",
        }}
      />
    </Folded>
  );
}

/** The call of the transaction and its events, as the node has them; asked for when it is opened. */
export function DecodedTransaction({ payment: { id, asset, token, network } }: { payment: PaymentDetail }) {
  const shown = useSignal<TransactionView | string>("…");
  async function load(): Promise<void> {
    const response = await fetch(`/payments/${id}/transaction`);
    const answer = (await response.json().catch(() => ({}))) as TransactionView & { error?: string };
    shown.value = response.ok ? answer : (answer.error ?? `That failed with status ${response.status}.`);
  }
  const view = shown.value;
  return (
    <details class="folded" onToggle={(event) => event.currentTarget.open && load()}>
      <summary>Transaction, decoded</summary>
      {typeof view === "string" ? (
        <p>{view}</p>
      ) : (
        <Decoded view={view} token={isOf(view, asset) ? token : null} coin={coinOf(network)} />
      )}
    </details>
  );
}

/** Whether a transaction moves this token. */
function isOf({ call }: TransactionView, asset: string | null): boolean {
  return call !== null && call.asset.toLowerCase() === asset?.toLowerCase();
}

type DecodedProps = { view: TransactionView; coin: string; token: PaymentDetail["token"] };

function Decoded({ view: { call, mined, from, to, gasLimit }, token, coin }: DecodedProps) {
  const fee = mined?.fee ? `${Number(mined.fee) / 1e18} ${coin}` : undefined;
  return (
    <>
      <Facts
        facts={{ from, to, block: mined?.blockNumber, gas: mined?.gasUsed, "gas at most": gasLimit, fee }}
      />
      <h4>{call === null ? "It moves no payment" : `${call.name} of ${call.asset}`}</h4>
      {call?.payments.map((payment, index) => (
        <Facts key={index} facts={{ ...payment, value: formatBoth(payment.value, token) }} />
      ))}
      <h4>
        {mined === null ? "It is not mined" : `Events${mined.succeeded ? "" : ": none, it was reverted"}`}
      </h4>
      {mined?.events.map(({ name, emitter, logIndex, fields }) => (
        <section key={logIndex} aria-label={`Event ${name}`}>
          <b>{name}</b>
          <Facts facts={{ ...fields, "emitted by": emitter }} />
        </section>
      ))}
    </>
  );
}
