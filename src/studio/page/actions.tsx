import { act, draft, harness, isLocal } from "./state.ts";

/** What can be done to the local chains: pay as a test payer, move time, reset. */
export function Actions() {
  const view = harness.value;
  const { network, payer, amount, x402Version, validForSeconds } = draft.value;
  const edit = (change: Partial<typeof draft.value>) => {
    draft.value = { ...draft.value, ...change };
  };
  // The mock has no chains to pay on.
  if (view === null || !isLocal.value) return null;
  const names = Object.keys(view.networks);
  const chosen = network || names[0] || "";
  const units = String(Math.round(Number(amount) * 1_000_000));
  return (
    <form
      class="actions"
      aria-label="Act on the local chains"
      onSubmit={(event) => {
        event.preventDefault();
        void act(
          "/harness/pay",
          {
            ...{ network: chosen, payer, amount: units },
            x402Version: Number(x402Version),
            validForSeconds: Number(validForSeconds),
          },
          "Paid; see the list.",
        );
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
        USDC
        <input
          type="number"
          min="0"
          step="0.000001"
          id="amount"
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
      <label>
        Valid for (s)
        <input
          type="number"
          value={validForSeconds}
          onInput={(event) => edit({ validForSeconds: event.currentTarget.value })}
        />
      </label>
      <button type="submit">Pay</button>
      <button
        type="button"
        onClick={() => act("/harness/reset", {}, "Everything is as it was at the start.")}
      >
        Reset
      </button>
    </form>
  );
}
