import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { errorsFile, withoutLocal } from "../../../protocol/catalogue-texts.ts";
import { formatAmount, plural } from "../../../protocol/token-units.ts";
import { optionsOf } from "../../explain/command-options.ts";
import type { PaymentDetail } from "../../timeline/payment-view.ts";
import { type Fix, isOfBalance } from "./again.tsx";
import { Button, CodeLine, Hash, withCode, withHashes } from "./controls.tsx";
import { describeSigned, statusOf } from "./format.ts";
import { atThisPlace, command, harness, isLocal, loadChains } from "./local-service.ts";
import { requestTimeOf } from "./snippets.ts";

/** The problems of a payment, each with its fix. */
export function ProblemCards({ payment, fix }: { payment: PaymentDetail; fix: Fix | undefined }) {
  const needsBalance = isLocal.value && isOfBalance(payment);
  useEffect(() => {
    if (needsBalance) void loadChains();
  }, [payment.id, payment.version, needsBalance]);
  return (
    <>
      {payment.explanations.map((explanation, index) => (
        <ProblemCard
          key={`${explanation.mistake}${explanation.at}`}
          payment={payment}
          explanation={explanation}
          fix={index === 0 ? fix : undefined}
        />
      ))}
    </>
  );
}

type CardProps = {
  payment: PaymentDetail;
  explanation: PaymentDetail["explanations"][number];
  fix: Fix | undefined;
};

function ProblemCard({ payment, explanation, fix }: CardProps) {
  const { mistake, title, at, got, expected, why, fix: advice, more } = explanation;
  const lines = [...commandsIn(advice, payment), ...linesFor(mistake)];
  return (
    <section
      class={`explanation ${statusOf(payment) === "refused" ? "" : "soft-tone"}`}
      aria-label="What is wrong"
    >
      <h3>{withHashes(title)}</h3>
      {(at !== "" || got !== null || expected !== null) && (
        <dl class="difference">
          {at !== "" && (
            <div>
              <dt>where</dt>
              <dd>
                <code>{at}</code>
              </dd>
            </div>
          )}
          {got !== null && (
            <div class="got">
              <dt>got</dt>
              <dd>{withHashes(got)}</dd>
            </div>
          )}
          {expected !== null && (
            <div class="expected">
              <dt>expected</dt>
              <dd>{withHashes(expected)}</dd>
            </div>
          )}
        </dl>
      )}
      {why !== "" && <p class="why">{withCode(why)}</p>}
      {advice !== "" && (
        <p>
          <strong>What to do:</strong> {withCode(lines.length > 0 ? withoutLocal(advice) : advice)}
        </p>
      )}
      {fix !== undefined && (
        <p class="buttons">
          <Button class="primary" onClick={fix.run}>
            {fix.label}
          </Button>
        </p>
      )}
      {lines.map(([name, text]) => (
        <CodeLine key={text} name={name} text={text} />
      ))}
      {more.startsWith(errorsFile) && (
        <p class="more">
          <a href={more.replace(errorsFile, "/errors")}>More on this</a>
        </p>
      )}
    </section>
  );
}

const commandStart = /^(x402-kit |up --)/;

/** The commands in an advice, with the options for this payment. */
function commandsIn(advice: string, payment: PaymentDetail): [name: string, text: string][] {
  const { network, payer, amount, asset, token, signed } = payment;
  // Values that could not be read must not be pasted into a terminal.
  const terms = signed === null ? { network: null, payer: null } : { network, payer };
  const codes = advice.split("`").filter((part, index) => index % 2 === 1 && commandStart.test(part));
  return codes.flatMap((code): [string, string][] => {
    // A placeholder such as BODY makes a command unfit for pasting.
    if (/\b[A-Z]{3,}\b/.test(code)) return [];
    const words = code.replace(/^x402-kit /, "");
    const actsOnChains = words === "fund" || words === "approve";
    if (actsOnChains && (!isLocal.value || terms.payer === null)) return [];
    const options = optionsOf(words, { at: atThisPlace, ...terms, amount, asset, token }) ?? "";
    return [["the command", `${command} ${words}${options}`]];
  });
}

/** The settings for a shop whose configuration is wrong. */
function linesFor(mistake: string): [name: string, text: string][] {
  if (harness.value === null) return [];
  const { facilitator, organization } = harness.value;
  if (mistake === "unauthorized") return [["the header", `Authorization: ${organization.apiKey}`]];
  return mistake === "not-found" ? [["the facilitator's URL", facilitator.url]] : [];
}

/** A member of a payment: the signed value, and the required one, if the shop requires it. */
type Pair = {
  name: string;
  signed: string | null;
  required: string | null;
  show(value: string): ComponentChildren;
};

/** The signed values next to the required ones; differences are marked. */
export function Comparison({ payment }: { payment: PaymentDetail }) {
  const { signed, required } = payment;
  if (signed === null || required === null) return null;
  const pairs = pairsOf(payment, required);
  const count = pairs.filter(differs).length;
  return (
    <section>
      <h3>Signed and required {count > 0 && <span class="mark">{plural(count, "difference")}</span>}</h3>
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
          name: `${label} / payTo`,
          signed,
          required: required.payTo ?? null,
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
