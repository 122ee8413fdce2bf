import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type TimeField, timeFields } from "../../../methods/exact-eip3009/payment-times.ts";
import { parseAmount } from "../../../protocol/token-units.ts";
import { Button, Select } from "./controls.tsx";
import { describeTime, parseTime, timeForms, writeTime } from "./format.ts";
import { payKinds, payTermsOf } from "./snippets.ts";
import {
  act,
  chains,
  chainTimeOf,
  draft,
  harness,
  isLocal,
  loadChains,
  notice,
  noticeAmount,
  pay,
  tokenOf,
} from "./state.ts";

/** What can be done to the local chains: pay as a test payer, with any terms and times, and reset. */
export function Actions() {
  const view = harness.value;
  const { network, payer, amount, kind, x402Version, times } = draft.value;
  const edit = (change: Partial<typeof draft.value>) => {
    draft.value = { ...draft.value, ...change };
  };
  const hasChains = isLocal.value;
  // Times are shown from the chain's, which the first of them needs.
  useEffect(() => {
    if (hasChains && chains.value.length === 0) void loadChains();
  }, [hasChains]);
  // The mock has no chains to pay on.
  if (view === null || !hasChains) return null;
  const names = Object.keys(view.networks);
  const chosen = network || names[0] || "";
  const { symbol, decimals } = tokenOf(chosen);
  const units = parseAmount(amount, decimals);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    if (units === undefined) return noticeAmount(decimals);
    const parsed = Object.entries(times).flatMap(([name, text]) => {
      const time = parseTime(text);
      return time === undefined ? [] : [[name, writeTime(time)]];
    });
    if (parsed.length < timeFields.length) {
      notice.value = `A time is ${timeForms}.`;
      return;
    }
    const terms = { network: chosen, payer, ...payTermsOf(kind, units, Number(x402Version)) };
    void pay({ ...terms, ...Object.fromEntries(parsed) });
  };
  const timeInput = ({ name, label }: TimeField) => (
    <label key={name}>
      {label}
      <input
        type="text"
        class="time-input"
        title={`${name}: ${timeForms}`}
        aria-invalid={parseTime(times[name]) === undefined}
        aria-describedby="times"
        value={times[name]}
        onFocus={loadChains}
        onInput={(event) => edit({ times: { ...draft.value.times, [name]: event.currentTarget.value } })}
      />
    </label>
  );
  return (
    <form class="actions" aria-label="Act on the local chains" onSubmit={onSubmit}>
      <label>
        Network <Select value={chosen} options={names} onChange={(name) => edit({ network: name })} />
      </label>
      <label>
        Payer{" "}
        <Select value={payer} options={Object.keys(view.payers)} onChange={(name) => edit({ payer: name })} />
      </label>
      <label>
        {symbol}
        <input
          type="text"
          inputMode="decimal"
          class="amount-input"
          id="amount"
          aria-invalid={units === undefined}
          value={amount}
          onInput={(event) => edit({ amount: event.currentTarget.value })}
        />
      </label>
      <label>
        By{" "}
        <Select
          value={kind}
          options={payKinds}
          onChange={(name) => edit({ kind: payKinds.find((one) => one === name) ?? "eip3009" })}
        />
      </label>
      {kind === "eip3009" && (
        <label>
          Version{" "}
          <Select value={x402Version} options={["1", "2"]} onChange={(name) => edit({ x402Version: name })} />
        </label>
      )}
      {timeFields.map(timeInput)}
      <button type="submit">Pay</button>
      <Button onClick={() => act("/harness/reset", {}, "Everything is as it was at the start.")}>
        Reset
      </Button>
      <TimesPreview network={chosen} />
      {units === "0" && (
        <span class="outcome pending">
          An amount of 0 is refused unless the facilitator is configured for it; “Pay” shows how.
        </span>
      )}
    </form>
  );
}

/** What the times of the form are: in seconds, as dates, and from the chain's time, which goes on. */
function TimesPreview({ network }: { network: string }) {
  const tick = useSignal(0);
  useEffect(() => {
    const timer = setInterval(() => tick.value++, 1_000);
    return () => clearInterval(timer);
  }, []);
  void tick.value;
  const now = chainTimeOf(network);
  const describe = ({ name, label }: TimeField) => {
    const time = parseTime(draft.value.times[name]);
    if (time === undefined) return <span class="outcome refused">{`${label}: a time is ${timeForms}`}</span>;
    return (
      <span>
        {label} <b>{describeTime(time, now)}</b>
      </span>
    );
  };
  return (
    <div id="times" class="times">
      {timeFields.map(describe)}
    </div>
  );
}
