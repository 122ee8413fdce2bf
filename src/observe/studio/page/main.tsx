import { render } from "preact";
import { Actions } from "./actions.tsx";
import { ChainsPane } from "./chains-pane.tsx";
import { Button, Select } from "./controls.tsx";
import { DetailPane } from "./detail-pane.tsx";
import { FaultsPane } from "./faults-pane.tsx";
import { shorten } from "./format.ts";
import { PaymentList } from "./list.tsx";
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
} from "./page-state.ts";
import { SetupPane } from "./setup-pane.tsx";

/** More are found by the search; a menu of thousands is of no use. */
const mostPayers = 200;

function App() {
  const ofChains = isLocal.value ? (["chains", "faults"] as const) : [];
  const places = ["payments", ...ofChains, "setup"] as const;
  const go = (name: (typeof places)[number]) => {
    place.value = name;
    // What it says is of the view that is left.
    notice.value = "";
  };
  return (
    <>
      <header class="top">
        <h1>x402 studio</h1>
        <nav aria-label="Views">
          {places.map((name) => (
            <Button
              key={name}
              aria-current={place.value === name ? "page" : undefined}
              onClick={() => go(name)}
            >
              {name}
            </Button>
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
  const known = payers.value
    .slice(0, mostPayers)
    .map(([address, name]) => [address, name ?? shorten(address)] as const);
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
      <Select label="Network" none="all networks" options={networks} {...filterBy(filterNetwork)} />
      <Select label="Payer" none="all payers" options={known} {...filterBy(filterPayer)} />
      <Select label="Outcome" none="all outcomes" options={outcomes} {...filterBy(filterOutcome)} />
      <Button aria-pressed={paused.value} onClick={() => (paused.value = !paused.value)}>
        {paused.value ? "Go on" : "Pause"}
      </Button>
      <span class="counts">
        {rows.value.length} of {total.value}
      </span>
    </div>
  );
}

const outcomes = ["settled", "valid", "refused", "undecided", "open"];

function filterBy(filter: typeof filterNetwork) {
  return { value: filter.value, onChange: (value: string) => (filter.value = value) };
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
