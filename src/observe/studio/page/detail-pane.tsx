import { useSignal } from "@preact/signals";
import type {
  PaymentDetail,
  ReceivedView,
  TimelineEntry,
  TransactionView,
} from "../../timeline/payment-view.ts";
import { Again, fixOf } from "./again.tsx";
import { Ago, Amount, Badge, Button, Facts, Folded, Hash, Icon } from "./controls.tsx";
import { ofNewestTransaction } from "./diagram-rows.ts";
import { Sequence, Waterfall } from "./diagrams.tsx";
import { formatBoth, formatDate, formatGwei, indentJson, noteOf, statusOf, whoOf } from "./format.ts";
import { coinOf, isLocal } from "./local-service.ts";
import { select } from "./page-route.ts";
import { detail, loadDetail, whyNoDetail } from "./payment-stream.ts";
import { Comparison, ProblemCards } from "./problem-card.tsx";
import { wayOf } from "./snippets.ts";

function Close() {
  return (
    <Button class="plain close" aria-label="Close" title="Close (Esc)" onClick={() => select(null)}>
      <Icon name="back" />
      <Icon name="close" />
    </Button>
  );
}

/** Everything about the selected payment. */
export function DetailPane() {
  const payment = detail.value;
  if (whyNoDetail.value !== null) {
    return (
      <div class="unknown">
        <Close />
        <p class="empty">
          {whyNoDetail.value === "unknown" ? (
            "The service knows nothing of this payment, or no longer: it was reset, or has seen many others since."
          ) : (
            <>
              Nothing is known of this payment yet. <Button onClick={loadDetail}>Ask again</Button>
            </>
          )}
        </p>
      </div>
    );
  }
  if (payment === null) return null;
  const { id, timeline, transaction, body, answers, received, omitted, exchanges } = payment;
  const fix = fixOf(payment);
  return (
    <article aria-label="Payment" key={id}>
      <Head payment={payment} isMended={fix !== undefined} />
      <div class="detail-body">
        <div class="story">
          <ProblemCards payment={payment} fix={fix} />
          <Sequence payment={payment} />
          <Waterfall timeline={timeline} omitted={omitted} />
        </div>
        <div class="record">
          <Comparison payment={payment} />
          {received !== null && <Received received={received} />}
          <Overview payment={payment} />
          <Transaction entries={timeline} />
          {transaction !== null && isLocal.value && (
            <DecodedTransaction key={`${id} ${transaction}`} payment={payment} />
          )}
          {exchanges.map(({ method, url, header, status, ...said }, index) => (
            <Folded key={index} title={`${method} ${new URL(url).pathname}: ${status ?? "no answer"}`}>
              <Facts facts={{ url, "payment header": header }} />
              <pre>{JSON.stringify(pick(said), null, 2)}</pre>
            </Folded>
          ))}
          {body !== null && (
            <Folded title="Request body">
              <pre>{JSON.stringify(body, null, 2)}</pre>
            </Folded>
          )}
          {answers.map(({ operation, status, body }) => (
            <Folded key={operation} title={`Answer to ${operation}: ${status}`}>
              <pre>{indentJson(body)}</pre>
            </Folded>
          ))}
        </div>
      </div>
    </article>
  );
}

const isEmptyList = (value: unknown) => Array.isArray(value) && value.length === 0;

/** The non-empty parts of an exchange between client and shop. */
function pick({ accepted, challenges, receipt, body }: Partial<PaymentDetail["exchanges"][number]>) {
  const all = { accepted, challenges, receipt, body };
  return Object.fromEntries(
    Object.entries(all).filter(([, one]) => one !== null && one !== "" && !isEmptyList(one)),
  );
}

/** The payment's terms and status, and the actions on it. */
function Head({ payment, isMended }: { payment: PaymentDetail; isMended: boolean }) {
  const { amount, charge, token, network, payer, payerName, required, firstSeenAt, faults, signed } = payment;
  const note = noteOf(payment);
  return (
    <header class="detail-head">
      <div class="headline">
        <Close />
        <h2>
          {amount === null || signed === null ? (
            titleOf(payment)
          ) : (
            <>
              {charge !== null && (
                <>
                  <Amount amount={charge} token={token} /> of at most{" "}
                </>
              )}
              <Amount amount={amount} token={token} />{" "}
              <span class="on">on {network ?? "an unknown network"}</span>
            </>
          )}
        </h2>
        <Badge status={statusOf(payment)} />
        {note !== "" && <span class="note">{note}</span>}
        {faults.length > 0 && (
          <span class="hit">
            <Icon name="fault" />
            hit by {faults.join(", ")}
          </span>
        )}
      </div>
      <p class="terms soft">
        {payer !== null && (
          <span>
            {payerName !== null && <b>{payerName} </b>}
            <Hash name="the payer" hex={payer} />
            {required?.payTo !== undefined && (
              <>
                <Icon name="to" />
                <Hash name="the recipient" hex={required.payTo} />
              </>
            )}
          </span>
        )}
        {wayOf(payment) !== null && <span>{wayOf(payment)}</span>}
        <span>
          <Ago at={firstSeenAt} />
        </span>
      </p>
      <Again payment={payment} isMended={isMended} />
    </header>
  );
}

function titleOf(payment: PaymentDetail): string {
  const { network, unrouted, verify, settle, shop } = payment;
  if (unrouted !== null) return whoOf(payment);
  if (shop !== null) return `${shop.method} ${shop.path}`;
  if ((settle ?? verify)?.status === 401) return "A request without an accepted API key";
  return network === null ? "An unreadable request" : `An unreadable request on ${network}`;
}

function Overview({ payment }: { payment: PaymentDetail }) {
  const { id, transaction, ledger, delivered, chainTime, timeline } = payment;
  const warning = timeline.findLast(({ details }) => details.warning !== undefined)?.details.warning;
  return (
    <section aria-label="Record">
      <h3>Record</h3>
      <Facts
        class="facts"
        facts={{
          payment: id,
          transaction,
          ledger,
          "chain's time then": chainTime && `${chainTime} · ${formatDate(Number(chainTime))}`,
          "success delivered": delivered === null ? null : delivered ? "yes" : "no",
          warning: warning === undefined ? null : `${warning}`,
        }}
      />
    </section>
  );
}

/** A body without a readable payment, with the faulty part marked. */
function Received({ received: { text, bytes, isWhole, contentType, problem } }: { received: ReceivedView }) {
  const at = problem?.offset ?? text.length;
  const wrong = text.slice(at, at + 1);
  return (
    <section aria-label="What was received">
      <h3>What was received</h3>
      <p class="soft">
        {bytes} bytes, content-type {contentType ?? "not given"}
        {!isWhole && "; the beginning is shown"}
        {text.includes("•") && "; what may be secret is masked"}
      </p>
      {problem !== null && (
        <p class="soft">
          line {problem.line}, column {problem.column}: {problem.found}
        </p>
      )}
      <pre>
        {text.slice(0, at)}
        {problem !== null && <mark>{wrong.trim() === "" ? `⟨here⟩${wrong}` : wrong}</mark>}
        {text.slice(at + 1)}
      </pre>
    </section>
  );
}

/** The known facts about the newest transaction that carried a payment. */
function Transaction({ entries }: { entries: readonly TimelineEntry[] }) {
  const steps = entries.filter(({ kind }) => kind === "transaction");
  if (steps.length === 0) return null;
  const known = ofNewestTransaction(steps);
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

/** The transaction's call and events, as the node has them; loaded when expanded. */
function DecodedTransaction({ payment: { id, asset, token, network } }: { payment: PaymentDetail }) {
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

/** True if a transaction moves this token. */
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
      {call?.codes && <Facts facts={{ ...call.codes, services: call.codes.services?.join(", ") }} />}
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
