import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { facilitator, ofChains, ofFacilitator, type Switch } from "./fault-switches.ts";
import { act, faults, harness, loadFaults } from "./state.ts";

const refreshEveryMs = 1_000;

/** Trouble between a shop and the facilitator, between that and a node, and on the chain, as switches with counters. */
export function FaultsPane() {
  const chosen = useSignal("");
  useEffect(() => {
    void loadFaults();
    const timer = setInterval(loadFaults, refreshEveryMs);
    return () => clearInterval(timer);
  }, []);
  const names = Object.keys(harness.value?.networks ?? {});
  const network = chosen.value || names[0] || "";
  return (
    <div class="pane">
      <section class="card wide" aria-label="Faults of the facilitator">
        <h2>Between a shop and the facilitator</h2>
        <Switches place={facilitator} switches={ofFacilitator} />
      </section>
      <section class="card wide" aria-label="Faults of chains">
        <h2>Between the facilitator and a chain</h2>
        <p>
          <label>
            On{" "}
            <select value={network} onChange={(event) => (chosen.value = event.currentTarget.value)}>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        </p>
        <Switches place={network} switches={ofChains} />
      </section>
    </div>
  );
}

/** `place` is a network or the facilitator. */
function Switches({ place, switches }: { place: string; switches: readonly Switch[] }) {
  const toggle = async (kind: string, more: object | undefined, id: string | undefined) => {
    const what = `${kind} (${place})`;
    if (id === undefined)
      await act("/harness/faults/add", { network: place, kind, ...more }, `${what} is on.`);
    else await act("/harness/faults/remove", { id }, `${what} is off.`);
    await loadFaults();
  };
  return switches.map(({ kind, means, more }) => {
    const set = faults.value.find((fault) => fault.kind === kind && fault.network === place);
    return (
      <div class="switch" key={kind}>
        <button
          type="button"
          role="switch"
          aria-checked={set !== undefined}
          aria-label={`${kind} (${place})`}
          onClick={() => toggle(kind, more, set?.id)}
        >
          {set === undefined ? "off" : "on"}
        </button>
        <b>{kind}</b>
        <span class="soft">{means}</span>
        <span class="number">
          {set === undefined ? "" : `hit ${set.fired} ${set.fired === 1 ? "time" : "times"}`}
        </span>
      </div>
    );
  });
}
