import type { ComponentChildren } from "preact";
import { formatAmount } from "../../../protocol/token-units.ts";
import type { PaymentDetail } from "../payment-view.ts";
import { Hash } from "./controls.tsx";
import { describeSigned } from "./format.ts";
import { requestTimeOf } from "./snippets.ts";

/** A member of a payment: what was signed, and what the shop requires, where it requires that. */
type Pair = {
  name: string;
  signed: string | null;
  required: string | null;
  show(value: string): ComponentChildren;
};

/** What was signed beside what was required; what differs is marked. */
export function Comparison({ payment }: { payment: PaymentDetail }) {
  const { signed, required } = payment;
  if (signed === null || required === null) return null;
  const pairs = pairsOf(payment, required);
  const count = pairs.filter(differs).length;
  return (
    <section>
      <h3>
        Signed and required{" "}
        {count > 0 && <span class="mark">{count === 1 ? "1 difference" : `${count} differences`}</span>}
      </h3>
      <table class="comparison" aria-label="Signed and required">
        <thead>
          <tr>
            <th scope="col">
              <span class="unseen">member</span>
            </th>
            <th scope="col">signed by the payer</th>
            <th scope="col">required by the shop</th>
          </tr>
        </thead>
        <tbody>
          {pairs.map((pair) => (
            <tr key={pair.name} class={differs(pair) ? "differs" : ""}>
              <th scope="row">{pair.name}</th>
              <td>{pair.signed === null ? "" : pair.show(pair.signed)}</td>
              <td>
                {pair.required === null ? "" : pair.show(pair.required)}
                {differs(pair) && <span class="mark"> differs</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function differs({ signed, required }: Pair): boolean {
  return signed !== null && required !== null && signed.toLowerCase() !== required.toLowerCase();
}

function pairsOf(payment: PaymentDetail, required: Record<string, string>): Pair[] {
  const { signedMembers, token } = payment;
  const requested = requestTimeOf(payment);
  const asText = (name: string) => (value: string) => <Hash name={name} hex={value} />;
  const asAmount = (value: string) => (
    <>
      {formatAmount(value, token)} <span class="exact">{value}</span>
    </>
  );
  const asTime = (value: string) => {
    const { distance, exact } = describeSigned(value, requested);
    return (
      <>
        {distance}{" "}
        {exact.split(" · ").map((part) => (
          <span class="exact" key={part}>
            {part}
          </span>
        ))}
      </>
    );
  };
  const pairs = signedMembers.map(({ label, value: signed, kind }): Pair => {
    switch (kind) {
      case "recipient":
        return {
          ...{ name: `${label} / payTo`, signed, required: required.payTo ?? null },
          show: asText("the recipient"),
        };
      case "amount":
        return { name: `${label} / amount`, signed, required: required.amount ?? null, show: asAmount };
      case "time":
        return { name: label, signed, required: null, show: asTime };
      default:
        return { name: label, signed, required: null, show: asText(label) };
    }
  });
  const asset = { name: "asset", signed: null, required: required.asset ?? null, show: asText("the asset") };
  return [...pairs, asset];
}
