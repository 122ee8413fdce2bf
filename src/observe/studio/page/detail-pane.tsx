import type { ComponentChildren } from "preact";
import { formatAmount, formatUnits } from "../../../protocol/token-units.ts";
import type { PaymentDetail, ReceivedView, TimelineEntry } from "../payment-view.ts";
import { Again } from "./again.tsx";
import { Button, Facts, Folded } from "./controls.tsx";
import {
  formatBoth,
  formatDate,
  formatGwei,
  formatMs,
  formatSeconds,
  formatTime,
  indentJson,
  shorten,
} from "./format.ts";
import { requestTimeOf } from "./snippets.ts";
import { atThisPlace, command, detail, funding, isLocal, notice, place, select, tokenOf } from "./state.ts";
import { DecodedTransaction, Transaction } from "./transaction-details.tsx";

/** Everything about the chosen payment. */
export function DetailPane() {
  const payment = detail.value;
  const close = <Button onClick={() => select(null)}>Close</Button>;
  if (payment === null) {
    return (
      <>
        <p class="empty">
          The service knows nothing of this payment, or no longer: it was reset, or has seen many others
          since.
        </p>
        {close}
      </>
    );
  }
  const { id, timeline, transaction, body, answers, received, omitted } = payment;
  return (
    <article aria-label="Payment">
      <header class="detail-head">
        <h2>{titleOf(payment)}</h2>
        {close}
      </header>
      <Explanations payment={payment} />
      <Again payment={payment} />
      <Overview payment={payment} />
      <Comparison payment={payment} />
      <Transaction entries={timeline} />
      {transaction !== null && isLocal.value && (
        <DecodedTransaction key={`${id} ${transaction}`} payment={payment} />
      )}
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
      {received !== null && <Received received={received} />}
      <h3>What happened</h3>
      <Timeline entries={timeline} omitted={omitted} />
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
          <Facts facts={{ got, expected }} />
          <p>{withCode(why, payment)}</p>
          {fix !== "" && (
            <p>
              <strong>What to do:</strong> {withCode(fix, payment)}
            </p>
          )}
          {isOfBalance(mistake) && <Fund payment={payment} />}
          {more !== "" && (
            <p class="path">
              <a href={more.replace("docs/errors.md", "/errors")}>More on this</a>
            </p>
          )}
        </section>
      ))}
    </>
  );
}

/** Whether it is that the payer has too little. */
function isOfBalance(mistake: string): boolean {
  return mistake === "insufficient_funds" || mistake === "permit2_insufficient_balance";
}

function titleOf({ amount, token, network, signed, unrouted, verify, settle }: PaymentDetail): string {
  if (unrouted !== null) return `${unrouted.status}: ${unrouted.method} ${unrouted.path}`;
  if ((settle ?? verify)?.status === 401) return "A request without an accepted API key";
  const terms = amount === null ? [] : [formatAmount(amount, token), "on", network ?? "an unknown network"];
  if (signed !== null) return terms.join(" ");
  return ["An unreadable request", ...(terms.length === 0 ? [] : ["for", ...terms])].join(" ");
}

/** Leads to where a test payer is given what it lacks. */
function Fund({ payment: { network, payerName, amount, token } }: { payment: PaymentDetail }) {
  if (!isLocal.value || network === null || payerName === null || amount === null) return null;
  const { decimals } = token ?? tokenOf(network);
  const fund = () => {
    funding.value = { network, payer: payerName, amount: formatUnits(amount, decimals) };
    place.value = "chains";
    notice.value = "";
  };
  return <Button onClick={fund}>Fund {payerName} on the chains page</Button>;
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
  return `${code.replace(/^x402-kit(?= )/, command).replace(/^up(?= --)/, `${command} up`)}${options}`;
}

function Overview({ payment }: { payment: PaymentDetail }) {
  const { id, payer, payerName, transaction, ledger, delivered, chainTime } = payment;
  return (
    <Facts
      class="facts"
      facts={{
        payment: id,
        payer: payerName === null ? payer : `${payer} (${payerName})`,
        transaction,
        ledger,
        "chain's time then": chainTime && `${chainTime} (${formatDate(Number(chainTime))})`,
        "success delivered": delivered === null ? null : delivered ? "yes" : "no",
      }}
    />
  );
}

/** What was signed beside what was required; what differs is marked. */
function Comparison({ payment }: { payment: PaymentDetail }) {
  const { signed, signedMembers, required, token } = payment;
  if (signed === null || required === null) return null;
  const requested = requestTimeOf(payment);
  const inUnits = (value: string) => formatBoth(value, token);
  const pairs = signedMembers.map(({ label, value, kind }): [string, string, string | undefined] => {
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
      {entries.map(({ at, kind, title, ok, tookMs, details: { requestId: _, ...details } }, index) => (
        <li key={index} class={`${kind} ${ok ? "" : "bad"}`}>
          <span class="at" title={formatTime(at)}>
            +{formatMs(at - start)}
          </span>
          <span class="kind">{kind}</span>
          <span class="what">
            {title}
            {tookMs !== null && <span class="took"> {formatMs(tookMs)}</span>}
            {Object.entries(details).map(([name, value]) => (
              <span class="fact" key={name}>
                {" "}
                {name} <FactValue name={name} text={String(value)} />
              </span>
            ))}
          </span>
        </li>
      ))}
    </ol>
  );
}

/** A hash by its ends, with the whole of it at hand; fees in gwei. */
function FactValue({ name, text }: { name: string; text: string }) {
  if (/^0x[0-9a-f]{64}$/i.test(text)) return <b title={text}>{shorten(text)}</b>;
  return <b>{/^max.*PerGas$/.test(name) ? formatGwei(text) : text}</b>;
}
