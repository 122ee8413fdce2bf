import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type TimeField, timeFields } from "../../../methods/exact-eip3009/payment-times.ts";
import { parseAmount, unitsOf } from "../../../protocol/token-units.ts";
import { Button, Dialog, now, Select } from "./controls.tsx";
import { describeTime, parseTime, timeForms, usualTime, writeTime } from "./format.ts";
import { chainTimeOf, harness, loadChains, networkNames, standsFor, tokenOf } from "./local-service.ts";
import { draft, isPayOpen, pay } from "./pay-from-page.ts";
import { payKinds, payTermsOf } from "./snippets.ts";
import { toast } from "./toasts.tsx";

export function PayDialog() {
  return isPayOpen.value && harness.value !== null ? <PayForm /> : null;
}

/** Pays as a test payer, with any terms and times. */
function PayForm() {
  const { network, payer, amount, asset, kind, x402Version, times } = draft.value;
  const isPaying = useSignal(false);
  const edit = (change: Partial<typeof draft.value>) => {
    draft.value = { ...draft.value, ...change };
  };
  // Times are shown from the chain's.
  useEffect(() => void loadChains(), []);
  const chosen = network || networkNames.value[0] || "";
  // By Permit2 any token is paid with.
  const tokens = kind === "eip3009" ? {} : (harness.value?.networks[chosen]?.tokens ?? {});
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
      ...{ network: chosen, payer, ...(other !== undefined && { asset }) },
      ...payTermsOf(kind, units, Number(x402Version)),
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
              value={kind}
              options={payKinds}
              onChange={(name) => edit({ kind: payKinds.find((one) => one === name) ?? "eip3009" })}
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
          {kind === "eip3009" && (
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

/** Says how an amount is written. */
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

/** What the times of the form are: in seconds, as dates, and from the chain's time, which goes on. */
function TimesPreview({ network }: { network: string }) {
  // Goes on with the clock.
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
