import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { forTimes, type PaymentTimes, type TimeField, timeFields } from "../../../methods/payment-times.ts";
import { isPaidBy } from "../../../protocol/networks.ts";
import { formatUnits, parseAmount, unitsOf } from "../../../protocol/token-units.ts";
import type { PaymentDetail, PaymentSummary } from "../../timeline/payment-view.ts";
import { Button, Dialog, now, Select } from "./controls.tsx";
import { describeTime, parseTime, timeForms, usualTime, writeFromNow, writeTime } from "./format.ts";
import {
  ask,
  chainTimeOf,
  get,
  harness,
  loadChains,
  loadMethods,
  methods,
  networkNames,
  standsFor,
  tokenOf,
} from "./local-service.ts";
import { select } from "./page-route.ts";
import { knowsPayment } from "./payment-stream.ts";
import { localTokenOf, payTermsOf, requestTimeOf, signedTimes } from "./snippets.ts";
import { toast } from "./toasts.tsx";

export function PayDialog() {
  return isPayOpen.value && harness.value !== null ? <PayForm /> : null;
}

/** The form for paying as a test payer, with any terms and times. */
function PayForm() {
  const { network, payer, amount, asset, x402Version, times } = draft.value;
  const isPaying = useSignal(false);
  const edit = (change: Partial<typeof draft.value>) => {
    draft.value = { ...draft.value, ...change };
  };
  // Times are shown relative to the chain's.
  useEffect(() => void Promise.all([loadChains(), loadMethods()]), []);
  const chosen = network || networkNames.value[0] || "";
  const way = methods.value.find(({ name }) => name === draft.value.way) ?? methods.value[0];
  const tokens = Object.fromEntries(
    Object.entries(harness.value?.networks[chosen]?.tokens ?? {}).filter(
      ([, token]) => way !== undefined && isPaidBy(token, way.transfer),
    ),
  );
  const other = tokens[asset];
  const { symbol, decimals } = other === undefined ? tokenOf(chosen) : unitsOf(other);
  const units = parseAmount(amount, decimals);
  const close = () => (isPayOpen.value = false);
  const onSubmit = async (event: Event) => {
    event.preventDefault();
    if (units === undefined) return sayAmount(decimals);
    const parsed = Object.entries(times).flatMap(([name, text]) => {
      const time = parseTime(text);
      return time === undefined ? [] : [[name, writeTime(time)]];
    });
    if (parsed.length < timeFields.length) return toast(`A time is ${timeForms}.`, { isError: true });
    const terms = {
      network: chosen,
      payer,
      ...(other !== undefined && { asset }),
      ...payTermsOf(way ?? null, units, way?.versions.includes(1) ? Number(x402Version) : 2),
    };
    isPaying.value = true;
    close();
    await pay({ ...terms, ...Object.fromEntries(parsed) });
  };
  const isUsual = timeFields.every((field) => times[field.name] === usualTime(field));
  return (
    <Dialog title="Pay" class="pay" onClose={close}>
      <form aria-label="Pay as a test payer" onSubmit={onSubmit}>
        <label>
          Payer
          <Select
            value={payer}
            options={Object.keys(harness.value?.payers ?? {})}
            onChange={(name) => edit({ payer: name })}
          />
        </label>
        <p class="hint">{standsFor(payer)}</p>
        <div class="two">
          <label>
            {symbol}
            <input
              type="text"
              inputMode="decimal"
              id="amount"
              aria-invalid={units === undefined}
              value={amount}
              onInput={(event) => edit({ amount: event.currentTarget.value })}
            />
          </label>
          <label>
            Network
            <Select
              value={chosen}
              options={networkNames.value}
              onChange={(name) => edit({ network: name })}
            />
          </label>
        </div>
        {units === "0" && (
          <p class="hint warn">
            An amount of 0 is refused unless the facilitator is configured for it; “Pay” shows how.
          </p>
        )}
        <div class="two">
          <label>
            By
            <Select
              value={way?.name ?? ""}
              options={methods.value.map(({ name }) => name)}
              onChange={(name) => edit({ way: name })}
            />
          </label>
          {Object.keys(tokens).length > 0 && (
            <label>
              Token
              <Select
                value={asset}
                none={tokenOf(chosen).symbol}
                options={Object.keys(tokens)}
                onChange={(name) => edit({ asset: name })}
              />
            </label>
          )}
          {way?.versions.includes(1) && (
            <label>
              Version
              <Select
                value={x402Version}
                options={["1", "2"]}
                onChange={(name) => edit({ x402Version: name })}
              />
            </label>
          )}
        </div>
        <details class="folded" open={!isUsual}>
          <summary>Times</summary>
          <div class="two">{timeFields.map((field) => timeInput(field, times[field.name], edit))}</div>
          <TimesPreview network={chosen} />
        </details>
        <div class="buttons end">
          <Button onClick={close}>Cancel</Button>
          <button type="submit" class="primary" disabled={isPaying.value}>
            Pay
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Shows how to write an amount. */
export function sayAmount(decimals: number): void {
  toast(`An amount is digits with at most ${decimals} behind the point, such as 0.01.`, { isError: true });
}

function timeInput(
  { name, label }: TimeField,
  value: string,
  edit: (change: Partial<typeof draft.value>) => void,
) {
  return (
    <label key={name}>
      {label}
      <input
        type="text"
        title={`${name}: ${timeForms}`}
        aria-invalid={parseTime(value) === undefined}
        aria-describedby="times"
        value={value}
        onInput={(event) => edit({ times: { ...draft.value.times, [name]: event.currentTarget.value } })}
      />
    </label>
  );
}

/** Shows the form's times in seconds, as dates, and relative to the chain's running time. */
function TimesPreview({ network }: { network: string }) {
  // Subscribes to the clock.
  void now.value;
  const chainTime = chainTimeOf(network);
  return (
    <div id="times" class="times">
      {timeFields.map(({ name, label }) => {
        const time = parseTime(draft.value.times[name]);
        return time === undefined ? (
          <p key={name} class="warn">{`${label}: a time is ${timeForms}`}</p>
        ) : (
          <p key={name}>
            {label} <b>{describeTime(time, chainTime)}</b>
          </p>
        );
      })}
    </div>
  );
}

type Draft = Record<"network" | "payer" | "amount" | "x402Version", string> & {
  /** The token's name; empty for the network's default. */
  asset: string;
  /** The payment method's name. */
  way: string;
  times: PaymentTimes<string>;
};

const draft = signal<Draft>({
  network: "",
  payer: "funded",
  amount: "0.01",
  way: "",
  asset: "",
  x402Version: "2",
  times: forTimes(usualTime),
});

export const isPayOpen = signal(false);

/** The body for `POST /harness/pay`. */
type PayTerms = { network: string; payer: string } & Record<string, unknown>;

/** The number of newest payments searched for the one just made. */
const mostLooked = 50;

/** Pays as a test payer, shows `before` and the outcome, and selects the new payment. */
export async function pay(terms: PayTerms, before = ""): Promise<void> {
  const isOld = knowsPayment();
  const answer = await ask("/harness/pay", terms);
  if (answer === undefined) return;
  const settle = Object(answer.settle) as Record<string, unknown>;
  const isSettled = settle.success === true;
  const outcome = isSettled
    ? "Paid and settled."
    : `Not settled: ${settle.errorReason ?? "the outcome is not known"}.`;
  toast(`${before}${outcome}`, { isError: !isSettled });
  const list = await get<{ payments: PaymentSummary[] }>(`/payments?limit=${mostLooked}`);
  const made = list?.payments.find(
    ({ id, network, payerName }) => !isOld(id) && network === terms.network && payerName === terms.payer,
  );
  if (made !== undefined) select(made.id);
}

/** The terms for paying again with a new signature; undefined if the payer is not a test payer. */
export function freshTermsOf(payment: PaymentDetail): PayTerms | undefined {
  const { signed, payerName: payer, network, amount, x402Version } = payment;
  if (signed === null || payer === null || network === null || amount === null) return undefined;
  // If only the contract may be paid, another payTo was a mistake; do not repeat it.
  const payTo = harness.value?.payToPolicy === undefined ? undefined : payment.required?.payTo;
  const asset = localTokenOf(payment);
  return { network, payer, payTo, asset, ...payTermsOf(payment.way, amount, x402Version ?? 2) };
}

/** Opens the dialog with the terms of a payment. */
export function edit(payment: PaymentDetail): void {
  const { network, payerName, amount, token, x402Version } = payment;
  if (network === null || amount === null) return;
  const { seconds } = requestTimeOf(payment);
  draft.value = {
    network,
    payer: payerName ?? "funded",
    amount: formatUnits(amount, (token ?? tokenOf(network)).decimals),
    way: payment.way?.name ?? "",
    asset: localTokenOf(payment) ?? "",
    x402Version: String(x402Version ?? 2),
    times: forTimes((field) => timeOf(timeIn(payment, field), seconds) ?? usualTime(field)),
  };
  isPayOpen.value = true;
}

function timeIn(payment: PaymentDetail, field: TimeField): string | undefined {
  return signedTimes(payment).find(({ isEnd }) => isEnd === field.isEnd)?.value;
}

const aYear = 31_536_000;

/**
 * A signed time as shown in the form: as far from the chain's time as it was at the request. A time more than a year
 * off, such as 0, stays as it is.
 */
function timeOf(signed: string | undefined, requestedAt: number): string | undefined {
  const seconds = Number(signed);
  if (signed === undefined || !Number.isSafeInteger(seconds)) return undefined;
  const ahead = seconds - requestedAt;
  return Math.abs(ahead) > aYear ? signed : writeFromNow(ahead);
}
