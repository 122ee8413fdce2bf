import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { countOf } from "./fault-count.ts";
import { FaultRow } from "./fault-row.tsx";
import { act, type FaultView, faultForm, faults, harness, loadFaultForm, loadFaults } from "./state.ts";

const refreshEveryMs = 1_000;

/** What stands in the place of a network for faults between a shop and the facilitator. */
const facilitator = "facilitator";

/** Trouble between a shop and the facilitator, between that and a node, and on the chain, as switches with counters. */
export function FaultsPane() {
  const chosen = useSignal("");
  useEffect(() => {
    void loadFaultForm();
    void loadFaults();
    const timer = setInterval(loadFaults, refreshEveryMs);
    return () => clearInterval(timer);
  }, []);
  const names = Object.keys(harness.value?.networks ?? {});
  const network = chosen.value || names[0] || "";
  const kinds = faultForm.value?.kinds ?? [];
  const rowsOf = (place: string, where: string) =>
    kinds
      .filter(({ places }) => places.includes(where))
      .map((description) => (
        <FaultRow key={`${place} ${description.kind}`} place={place} description={description} />
      ));
  return (
    <div class="pane">
      <SetNow />
      <section class="card wide" aria-label="Faults of the facilitator">
        <h2>Between a shop and the facilitator</h2>
        {rowsOf(facilitator, "facilitator")}
      </section>
      <section class="card wide" aria-label="Faults of chains">
        <h2>
          <label>
            Between the facilitator and the node of{" "}
            <select value={network} onChange={(event) => (chosen.value = event.currentTarget.value)}>
              {names.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        </h2>
        {rowsOf(network, "node")}
        <h2>On the chain {network}</h2>
        {rowsOf(network, "chain")}
      </section>
    </div>
  );
}

/** Every fault that lasts, those of the command line and of tests among them. */
function SetNow() {
  const end = async (path: string, body: object, done: string) => {
    await act(`/harness/faults/${path}`, body, done);
    await loadFaults();
  };
  const list = faults.value;
  return (
    <section class="card wide" aria-label="Faults that are set">
      <h2>Set now</h2>
      {list.length === 0 ? (
        <p class="soft">No fault is set.</p>
      ) : (
        <>
          {list.map((fault) => (
            <div class="set" key={fault.id}>
              <button
                type="button"
                aria-label={`Remove ${fault.kind} (${fault.network})`}
                onClick={() => end("remove", { id: fault.id }, `${fault.kind} (${fault.network}) has ended.`)}
              >
                Remove
              </button>
              <b>{fault.kind}</b>
              <span>
                {fault.network} <span class="soft">{detailsOf(fault)}</span>
              </span>
              <span class="number">{countOf(fault)}</span>
            </div>
          ))}
          <button type="button" onClick={() => end("clear", {}, "No fault is set any more.")}>
            Clear all faults
          </button>
        </>
      )}
    </section>
  );
}

function detailsOf({
  id: _,
  network: __,
  kind: ___,
  fired: ____,
  usedUp: _____,
  ...details
}: FaultView): string {
  return Object.entries(details)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(", ");
}
