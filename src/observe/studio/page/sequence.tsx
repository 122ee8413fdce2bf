import type { PaymentDetail } from "../payment-view.ts";
import { breakable } from "./controls.tsx";
import { lanes, sequenceOf } from "./sequence-steps.ts";

/** A payment between client, shop, facilitator and chain: what each said to the next, from above. */
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
