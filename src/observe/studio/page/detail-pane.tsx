import type { ComponentChildren } from "preact";
import { formatAmount, formatUnits } from "../../../protocol/token-units.ts";
import type { PaymentDetail, ReceivedView, TimelineEntry } from "../payment-view.ts";
import { Again } from "./again.tsx";
import { atThisPlace, command } from "./command.ts";
import { formatBoth, formatDate, formatMs, formatSeconds, formatTime, shorten } from "./format.ts";
import { requestTimeOf } from "./request-time.ts";
import { copyText, detail, funding, isLocal, notice, place, select, tokenOf } from "./state.ts";
import { DecodedTransaction } from "./transaction-details.tsx";

/** Everything about the chosen payment. */
export function DetailPane() {
  const payment = detail.value;
  if (payment === null) {
    return (
      <>
        <p class="empty">
          The service knows nothing of this payment, or no longer: it was reset, or has seen many others
          since.
        </p>
        <button type="button" onClick={() => select(null)}>
          Close
        </button>
      </>
    );
  }
  return (
    <article aria-label="Payment">
      <header class="detail-head">
        <h2>{titleOf(payment)}</h2>
        <button type="button" onClick={() => select(null)}>
          Close
        </button>
      </header>
      <Explanations payment={payment} />
      <Again payment={payment} />
      <Facts payment={payment} />
      <Comparison payment={payment} />
      <Transaction entries={payment.timeline} />
      {payment.transaction !== null && isLocal.value && (
        <DecodedTransaction key={`${payment.id} ${payment.transaction}`} payment={payment} />
      )}
      <Body body={payment.body} />
      {payment.answers.map(({ operation, status, body }) => (
        <details key={operation}>
          <summary>
            Answer to {operation}: {status}
          </summary>
          <pre>{indentJson(body)}</pre>
        </details>
      ))}
      {payment.received !== null && <Received received={payment.received} />}
      <h3>What happened</h3>
      <Timeline entries={payment.timeline} omitted={payment.omitted} />
    </article>
  );
}

function Explanations({ payment }: { payment: PaymentDetail }) {
  return (
    <>
      {payment.explanations.map(({ mistake, title, at, got, expected, why, fix, more }) => (
        <section class="explanation" key={`${mistake}${at}`} aria-label="Why it was refused">
          <h3>{title}</h3>
          {at !== "" && <p class="path">{at}</p>}
          <dl>
            {got !== null && <Fact name="got">{got}</Fact>}
            {expected !== null && <Fact name="expected">{expected}</Fact>}
          </dl>
          <p>{withCode(why, payment)}</p>
          {fix !== "" && (
            <p>
              <strong>What to do:</strong> {withCode(fix, payment)}
            </p>
          )}
          {mistake === "insufficient_funds" && <Fund payment={payment} />}
          {more !== "" && <p class="path">More: {more}</p>}
        </section>
      ))}
    </>
  );
}

function titleOf({ amount, token, network, signed }: PaymentDetail): string {
  const terms = amount === null ? [] : [formatAmount(amount, token), "on", network ?? "an unknown network"];
  if (signed !== null) return terms.join(" ");
  return ["An unreadable request", ...(terms.length === 0 ? [] : ["for", ...terms])].join(" ");
}

/** Leads to where a test payer is given what it lacks. */
function Fund({ payment: { network, payerName, amount, token } }: { payment: PaymentDetail }) {
  if (!isLocal.value || network === null || payerName === null || amount === null) return null;
  const { decimals } = token ?? tokenOf(network);
  return (
    <button
      type="button"
      onClick={() => {
        funding.value = { network, payer: payerName, amount: formatUnits(amount, decimals) };
        place.value = "chains";
        notice.value = "";
      }}
    >
      Fund {payerName} on the chains page
    </button>
  );
}

/** Text with what stands between backticks as code; commands as they are typed here, for this payment. */
function withCode(text: string, payment: PaymentDetail): ComponentChildren {
  return text
    .split("`")
    .map((part, index) => (index % 2 === 1 ? <code key={index}>{typed(part, payment)}</code> : part));
}

function typed(code: string, { network, payer, amount }: PaymentDetail): string {
  const isOfLocalChain = code === "x402-kit fund" && isLocal.value && network !== null && payer !== null;
  const options = isOfLocalChain
    ? ` --network ${network} --to ${payer} --amount ${amount}${atThisPlace}`
    : "";
  return `${code.replace(/^x402-kit(?= )/, command)}${options}`;
}

function Facts({ payment }: { payment: PaymentDetail }) {
  const { id, payer, payerName, transaction, ledger, delivered, chainTime } = payment;
  const rows: [string, string | null][] = [
    ["payment", id],
    ["payer", payerName === null ? payer : `${payer} (${payerName})`],
    ["transaction", transaction],
    ["ledger", ledger],
    ["chain's time then", chainTime && `${chainTime} (${formatDate(Number(chainTime))})`],
    ["success delivered", delivered === null ? null : delivered ? "yes" : "no"],
  ];
  return (
    <dl class="facts">{rows.map(([name, value]) => value !== null && <Fact name={name}>{value}</Fact>)}</dl>
  );
}

/** What was signed beside what was required; what differs is marked. */
function Comparison({ payment }: { payment: PaymentDetail }) {
  const { signed, required, token } = payment;
  const requested = requestTimeOf(payment);
  if (signed === null || required === null) return null;
  const inUnits = (value: string) => formatBoth(value, token);
  const pairs = payment.signedMembers.map(({ label, value, kind }): [string, string, string | undefined] => {
    switch (kind) {
      case "recipient":
        return [`${label} / payTo`, value, required.payTo];
      case "amount":
        return [`${label} / amount`, inUnits(value), required.amount && inUnits(required.amount)];
      case "time":
        return [label, formatSeconds(value, requested), undefined];
      default:
        return [label, value, undefined];
    }
  });
  pairs.push(["asset", "", required.asset]);
  return (
    <table class="comparison">
      <caption>Signed and required</caption>
      <thead>
        <tr>
          <th scope="col">member</th>
          <th scope="col">signed</th>
          <th scope="col">required</th>
        </tr>
      </thead>
      <tbody>
        {pairs.map(([name, was, asked]) => {
          const differs = was !== "" && asked !== undefined && was.toLowerCase() !== asked.toLowerCase();
          return (
            <tr key={name} class={differs ? "differs" : ""}>
              <th scope="row">{name}</th>
              <td>{was}</td>
              <td>
                {asked ?? ""}
                {differs && <span class="mark"> differs</span>}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

/** What is known of the newest transaction that carried it. */
function Transaction({ entries }: { entries: readonly TimelineEntry[] }) {
  const steps = entries.filter(({ kind }) => kind === "transaction");
  const known = Object.assign({}, ...steps.map(({ details }) => details)) as TimelineEntry["details"];
  const inGwei = (wei: unknown) => (wei === undefined ? undefined : `${Number(wei) / 1e9} gwei`);
  const rows: [string, unknown][] = [
    ["does", known.kind === "settle" ? `settle, for ${known.payments} at once` : known.kind],
    ["hash", known.transaction],
    ["from operator", known.operator],
    ["txNonce", known.txNonce],
    ["fee at most", inGwei(known.maxFeePerGas)],
    ["tip at most", inGwei(known.maxPriorityFeePerGas)],
    ["in block", known.blockNumber],
    ["block hash", known.blockHash],
    [
      "succeeded",
      known.succeeded === undefined ? undefined : known.succeeded ? "yes" : "no, it was reverted",
    ],
  ];
  if (steps.length === 0) return null;
  return (
    <details>
      <summary>Transaction</summary>
      <dl>{rows.map(([name, value]) => value !== undefined && <Fact name={name}>{String(value)}</Fact>)}</dl>
    </details>
  );
}

/** The text as it is where it is no JSON. */
function indentJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function Body({ body }: { body: PaymentDetail["body"] }) {
  if (body === null) return null;
  return (
    <details>
      <summary>Request body</summary>
      <pre>{JSON.stringify(body, null, 2)}</pre>
    </details>
  );
}

/** What came where no payment could be read, with the place that is wrong marked. */
function Received({ received: { text, bytes, isWhole, contentType, problem } }: { received: ReceivedView }) {
  const at = problem?.offset ?? text.length;
  const wrong = text.slice(at, at + 1);
  return (
    <section aria-label="What was received">
      <h3>What was received</h3>
      <p>
        {bytes} bytes, content-type {contentType ?? "not given"}
        {!isWhole && "; the beginning is shown"}
        {text.includes("•") && "; what may be secret is masked"}
      </p>
      {problem !== null && (
        <p class="path">
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

function Timeline({ entries, omitted }: { entries: readonly TimelineEntry[]; omitted: number }) {
  const start = entries[0]?.at ?? 0;
  return (
    <ol class="timeline">
      {omitted > 0 && <li>{omitted} earlier lines are not shown</li>}
      {entries.map(({ at, kind, title, ok, tookMs, details }, index) => (
        <li key={index} class={`${kind} ${ok ? "" : "bad"}`}>
          <span class="at" title={formatTime(at)}>
            +{formatMs(at - start)}
          </span>
          <span class="kind">{kind}</span>
          <span class="what">
            {title}
            {tookMs !== null && <span class="took"> {formatMs(tookMs)}</span>}
            {Object.entries(details)
              .filter(([name]) => name !== "requestId")
              .map(([name, value]) => (
                <span class="fact" key={name}>
                  {" "}
                  {name} <FactValue name={name} value={value} />
                </span>
              ))}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** A hash by its ends, with the whole of it at hand; fees in gwei. */
function FactValue({ name, value }: { name: string; value: string | number | boolean }) {
  const text = String(value);
  if (/^0x[0-9a-f]{64}$/i.test(text)) return <b title={text}>{shorten(text)}</b>;
  return <b>{/^max.*PerGas$/.test(name) ? `${Number(value) / 1e9} gwei` : text}</b>;
}

function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  const copy = () => copyText(String(children).split(" ")[0] ?? "", name);
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {children}{" "}
        {String(children).startsWith("0x") && (
          <button type="button" class="copy" onClick={copy} aria-label={`Copy ${name}`}>
            copy
          </button>
        )}
      </dd>
    </div>
  );
}
