import { useSignal } from "@preact/signals";
import { act, harness } from "./state.ts";

/** What can be done to the local chains: pay as a test payer, move time, reset. */
export function Actions() {
  const view = harness.value;
  const network = useSignal("");
  const payer = useSignal("funded");
  const amount = useSignal("0.01");
  if (view === null) return null;
  const names = Object.keys(view.networks);
  const chosen = network.value || names[0] || "";
  const units = String(Math.round(Number(amount.value) * 1_000_000));
  return (
    <form
      class="actions"
      aria-label="Act on the local chains"
      onSubmit={(event) => {
        event.preventDefault();
        void act(
          "/harness/pay",
          { network: chosen, payer: payer.value, amount: units },
          "Paid; see the list.",
        );
      }}
    >
      <label>
        Network
        <select value={chosen} onChange={(event) => (network.value = event.currentTarget.value)}>
          {names.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        Payer
        <select value={payer.value} onChange={(event) => (payer.value = event.currentTarget.value)}>
          {Object.keys(view.payers).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        USDC
        <input
          type="number"
          min="0"
          step="0.000001"
          value={amount.value}
          onInput={(event) => (amount.value = event.currentTarget.value)}
        />
      </label>
      <button type="submit">Pay</button>
      <button
        type="button"
        onClick={() =>
          act("/harness/advance-time", { network: chosen, seconds: 60 }, `${chosen} is a minute later.`)
        }
      >
        +1 minute
      </button>
      <button
        type="button"
        onClick={() => act("/harness/reset", {}, "Everything is as it was at the start.")}
      >
        Reset
      </button>
    </form>
  );
}
