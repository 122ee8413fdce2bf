import type { Signal } from "@preact/signals";
import { type ComponentChildren, render } from "preact";
import { Actions } from "./actions.tsx";
import { ChainsPane } from "./chains-pane.tsx";
import { DetailPane } from "./detail-pane.tsx";
import { FaultsPane } from "./faults-pane.tsx";
import { shorten } from "./format.ts";
import { PaymentList } from "./list.tsx";
import { SetupPane } from "./setup-pane.tsx";
import {
  connected,
  filterNetwork,
  filterOutcome,
  filterPayer,
  filterText,
  harness,
  isLocal,
  listen,
  loadDetail,
  loadHarness,
  move,
  notice,
  paused,
  payers,
  place,
  rows,
  select,
  selectedId,
  total,
} from "./state.ts";

/** More are found by the search; a menu of thousands is of no use. */
const mostPayers = 200;

function App() {
  const ofChains = isLocal.value ? (["chains", "faults"] as const) : [];
  const places = ["payments", ...ofChains, "setup"] as const;
  return (
    <>
      <header class="top">
        <h1>x402 studio</h1>
        <nav aria-label="Views">
          {places.map((name) => (
            <button
              type="button"
              key={name}
              aria-current={place.value === name ? "page" : undefined}
              onClick={() => {
                place.value = name;
                // What it says is of the view that is left.
                notice.value = "";
              }}
            >
              {name}
            </button>
          ))}
        </nav>
        <span class={connected.value ? "live" : "lost"} role="status">
          {connected.value ? "live" : "connection lost, trying again"}
        </span>
        {place.value === "payments" && <Filters />}
      </header>
      {place.value === "payments" ? (
        <main class={selectedId.value === null ? "" : "split"}>
          <PaymentList />
          {selectedId.value !== null && (
            <aside>
              <DetailPane />
            </aside>
          )}
        </main>
      ) : (
        <main class="views">
          {place.value === "chains" && <ChainsPane />}
          {place.value === "faults" && <FaultsPane />}
          {place.value === "setup" && <SetupPane />}
        </main>
      )}
      <footer>
        {(place.value === "payments" || place.value === "chains") && <Actions />}
        <output>{notice.value}</output>
        {place.value === "payments" && <span class="keys">j k choose · Esc close · p pause · / search</span>}
      </footer>
    </>
  );
}

/** What is shown of the payments. */
function Filters() {
  const networks = Object.keys(harness.value?.networks ?? {});
  return (
    <div class="filters">
      <input
        type="search"
        placeholder="Payer, reason, transaction…  ( / )"
        aria-label="Search payments"
        id="search"
        value={filterText.value}
        onInput={(event) => (filterText.value = event.currentTarget.value)}
      />
      <Choice label="Network" of={filterNetwork} all="all networks">
        {networks.map((name) => (
          <option key={name}>{name}</option>
        ))}
      </Choice>
      <Choice label="Payer" of={filterPayer} all="all payers">
        {payers.value.slice(0, mostPayers).map(([address, name]) => (
          <option key={address} value={address}>
            {name ?? shorten(address)}
          </option>
        ))}
      </Choice>
      <Choice label="Outcome" of={filterOutcome} all="all outcomes">
        {["settled", "valid", "refused", "undecided", "open"].map((name) => (
          <option key={name}>{name}</option>
        ))}
      </Choice>
      <button
        type="button"
        aria-pressed={paused.value}
        onClick={() => {
          paused.value = !paused.value;
        }}
      >
        {paused.value ? "Go on" : "Pause"}
      </button>
      <span class="counts">
        {rows.value.length} of {total.value}
      </span>
    </div>
  );
}

/** A filter by one of some values, or by none. */
function Choice(given: { label: string; of: Signal<string>; all: string; children: ComponentChildren }) {
  const { label, of, all, children } = given;
  return (
    <select
      aria-label={label}
      value={of.value}
      onChange={(event) => {
        of.value = event.currentTarget.value;
      }}
    >
      <option value="">{all}</option>
      {children}
    </select>
  );
}

addEventListener("keydown", (event) => {
  const { target, key } = event;
  if (key === "Escape") {
    if (target instanceof HTMLElement) target.blur();
    select(null);
    return;
  }
  if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) return;
  if (place.value !== "payments") return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === "j" || key === "ArrowDown") move(1);
  else if (key === "k" || key === "ArrowUp") move(-1);
  else if (key === "p") paused.value = !paused.value;
  else if (key === "/") document.getElementById("search")?.focus();
  else return;
  event.preventDefault();
});

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
listen();
void loadHarness();
void loadDetail();
