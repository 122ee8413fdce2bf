import type { PaymentDetail, TimelineEntry } from "../../timeline/payment-view.ts";
import { breakable } from "./controls.tsx";
import { lanes, type Phase, phasesOf, sequenceOf, type WaterfallRow } from "./diagram-rows.ts";
import { formatMs, formatTime, shorten } from "./format.ts";

/** If a payment has many requests, only the newest are expanded. */
const mostOpen = 2;

const kindWords: Readonly<Record<WaterfallRow["kind"], string>> = {
  request: "request",
  check: "check",
  answer: "answer",
  ledger: "ledger",
  transaction: "tx",
  block: "block",
  rpc: "rpc",
  fault: "fault",
  delivery: "delivery",
  shop: "shop",
  withdrawal: "withdrawal",
};

const titles: Readonly<Record<string, string>> = {
  verify: "Verify",
  settle: "Settle",
  later: "After the answer",
};

/** Checks, RPC calls, ledger steps and blocks on a time axis, request by request. */
export function Waterfall({ timeline, omitted }: { timeline: readonly TimelineEntry[]; omitted: number }) {
  const phases = phasesOf(timeline);
  // The facilitator got no request.
  if (phases.length === 0) return null;
  return (
    <section class="waterfall" aria-label="What happened">
      <h3>What happened</h3>
      {omitted > 0 && <p class="soft">{omitted} earlier lines are not shown</p>}
      {phases.map((phase, index) => (
        <PhaseRows
          key={`${phase.name} ${phase.start}`}
          phase={phase}
          isOpen={index >= phases.length - mostOpen || phases.length <= mostOpen + 1}
        />
      ))}
    </section>
  );
}

function PhaseRows({ phase, isOpen }: { phase: Phase; isOpen: boolean }) {
  const { name, start, end, outcome, ok, rows } = phase;
  const span = Math.max(end - start, 1);
  const title = titles[name] ?? name;
  return (
    <details class="phase" open={isOpen}>
      <summary>
        <b>{title}</b>
        {outcome !== undefined && <span class={`outcome ${ok ? "good" : "bad"}`}>{outcome}</span>}
        <span class="soft number" title={formatTime(start)}>
          {end > start && formatMs(end - start)}
        </span>
      </summary>
      <ol>
        {rows.map((row, index) => (
          <BarRow key={index} row={row} start={start} span={span} />
        ))}
      </ol>
    </details>
  );
}

/** In percent; narrower bars would be invisible. */
const leastWidth = 0.8;

function BarRow({ row, start, span }: { row: WaterfallRow; start: number; span: number }) {
  const { kind, title, ok, facts, passed } = row;
  const took = row.end - row.start;
  const width = Math.max((took / span) * 100, leastWidth);
  const leftOf = (at: number, room = leastWidth) => Math.min(((at - start) / span) * 100, 100 - room);
  const left = leftOf(row.start, width);
  return (
    <li class={`bar-row ${kind} ${ok ? "" : "bad"}`}>
      <span class="kind">{kindWords[kind]}</span>
      <span class="what">
        {passed.length === 0 ? (
          <span class="title">{title}</span>
        ) : (
          <details class="passed">
            <summary>{title}</summary>
            <ul>
              {passed.map(({ name }) => (
                <li key={name}>{name}</li>
              ))}
            </ul>
          </details>
        )}
        {facts.map(([name, value]) => (
          <span class="fact" key={name}>
            {name} <b title={value}>{breakable(shorten(value))}</b>
          </span>
        ))}
      </span>
      <span class="track">
        {passed.length === 0 ? (
          <span class="bar" style={{ left: `${left}%`, width: `${width}%` }} />
        ) : (
          // One mark per check: there may have been waits between them.
          passed.map(({ name, at }) => <span class="bar" key={name} style={{ left: `${leftOf(at)}%` }} />)
        )}
      </span>
      <span class="number soft" title={formatTime(row.end)}>
        {took >= 0.1 && passed.length === 0 ? formatMs(took) : `+${formatMs(row.start - start)}`}
      </span>
    </li>
  );
}

/** The messages between client, shop, facilitator and chain about a payment, top to bottom. */
export function Sequence({ payment }: { payment: PaymentDetail }) {
  const steps = sequenceOf(payment);
  if (steps.length === 0) return null;
  return (
    <section class="sequence" aria-label="Who said what">
      <ul class="lanes">
        {lanes.map((lane) => (
          <li key={lane}>{lane}</li>
        ))}
      </ul>
      <ol>
        {steps.map(({ from, to, label, tone, isSeen }, index) => {
          const [left, right] = [Math.min(from, to), Math.max(from, to)];
          return (
            <li
              key={index}
              class={`step ${tone} ${isSeen ? "" : "guessed"} ${to > from ? "to-right" : "to-left"}`}
            >
              <span class="arrow" style={{ gridColumn: `${2 * left + 2} / ${2 * right + 2}` }}>
                <span class="unseen">
                  {lanes[from]} to {lanes[to]}:{" "}
                </span>
                <span class="label">{breakable(label.replace(/ (?=m?s\b)/g, "\u00a0"))}</span>
              </span>
            </li>
          );
        })}
      </ol>
      {steps.some(({ isSeen }) => !isSeen) && (
        <p class="soft">Dashed: not seen by the facilitator, and as shops and clients usually do.</p>
      )}
    </section>
  );
}
