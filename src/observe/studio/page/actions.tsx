import { useEffect } from "preact/hooks";
import { type TimeField, timeFields } from "../../../methods/exact-eip3009/payment-times.ts";
import { parseAmount } from "../../../protocol/token-units.ts";
import { act, chains, draft, harness, isLocal, loadChains, notice, pay, tokenOf } from "./state.ts";
import { parseTime, timeForms, writeTime } from "./times.ts";
import { TimesPreview } from "./times-preview.tsx";

/** What can be done to the local chains: pay as a test payer, with any terms and times, and reset. */
export function Actions() {
  const view = harness.value;
  const { network, payer, amount, x402Version, times } = draft.value;
  const edit = (change: Partial<typeof draft.value>) => {
    draft.value = { ...draft.value, ...change };
  };
  const hasChains = isLocal.value;
  // Times are told from the chain's, which the first of them needs.
  useEffect(() => {
    if (hasChains && chains.value.length === 0) void loadChains();
  }, [hasChains]);
  // The mock has no chains to pay on.
  if (view === null || !hasChains) return null;
  const names = Object.keys(view.networks);
  const chosen = network || names[0] || "";
  const token = tokenOf(chosen);
  const units = parseAmount(amount, token.decimals);
  const payAsTyped = async () => {
    if (units === undefined) {
      notice.value = `An amount is digits with at most ${token.decimals} behind the point, such as 0.01.`;
      return;
    }
    const parsed = Object.entries(times).flatMap(([name, text]) => {
      const time = parseTime(text);
      return time === undefined ? [] : [[name, writeTime(time)]];
    });
    if (parsed.length < timeFields.length) {
      notice.value = `A time is ${timeForms}.`;
      return;
    }
    await pay({
      ...{ network: chosen, payer, amount: units, x402Version: Number(x402Version) },
      ...Object.fromEntries(parsed),
    });
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
    <form
      class="actions"
      aria-label="Act on the local chains"
      onSubmit={(event) => {
        event.preventDefault();
        void payAsTyped();
      }}
    >
      <label>
        Network
        <select value={chosen} onChange={(event) => edit({ network: event.currentTarget.value })}>
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        Payer
        <select value={payer} onChange={(event) => edit({ payer: event.currentTarget.value })}>
          {Object.keys(view.payers).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        {token.symbol}
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
        Version
        <select value={x402Version} onChange={(event) => edit({ x402Version: event.currentTarget.value })}>
          <option>1</option>
          <option>2</option>
        </select>
      </label>
      {timeFields.map(timeInput)}
      <button type="submit">Pay</button>
      <button
        type="button"
        onClick={() => act("/harness/reset", {}, "Everything is as it was at the start.")}
      >
        Reset
      </button>
      <TimesPreview network={chosen} />
      {units === "0" && (
        <span class="outcome pending">
          An amount of 0 is refused unless the facilitator is configured for it; “Pay” shows how.
        </span>
      )}
    </form>
  );
}
