import { effect } from "@preact/signals";
import { render } from "preact";
import { ChainsPane } from "./chains-pane.tsx";
import { ChannelsPane, channels, loadChannelsSoon } from "./channels-pane.tsx";
import { Button, startClock } from "./controls.tsx";
import { DetailPane } from "./detail-pane.tsx";
import { FaultBanner, FaultsPane } from "./faults-pane.tsx";
import { PaymentList, Toolbar } from "./list.tsx";
import { activeFaults, followFaults, isLocal, loadFaults, loadHarness } from "./local-service.ts";
import { followHistory, hrefOf, select, selectedId, show, type View, view } from "./page-route.ts";
import { isPayOpen, PayDialog } from "./pay-dialog.tsx";
import {
  connected,
  followFilters,
  followSelection,
  listen,
  move,
  paused,
  refusals,
  rows,
  total,
} from "./payment-stream.ts";
import { SetupPane } from "./setup-pane.tsx";
import { Toasts } from "./toasts.tsx";

function App() {
  return (
    <>
      <TopBar />
      <FaultBanner />
      {view.value === "payments" ? (
        <>
          {total.value > 0 && <Toolbar />}
          <main class={selectedId.value === null ? "" : "split"}>
            <PaymentList />
            {selectedId.value !== null && (
              <aside key={selectedId.value}>
                <DetailPane />
              </aside>
            )}
          </main>
          {total.value > 0 && (
            <footer class="keys">
              <kbd>j</kbd> <kbd>k</kbd> next, previous · <kbd>Esc</kbd> close · <kbd>/</kbd> search ·{" "}
              <kbd>p</kbd> pause
            </footer>
          )}
        </>
      ) : (
        <main class="views">
          {view.value === "channels" && <ChannelsPane />}
          {view.value === "chains" && <ChainsPane />}
          {view.value === "faults" && <FaultsPane />}
          {view.value === "setup" && <SetupPane />}
        </main>
      )}
      <PayDialog />
      <Toasts />
    </>
  );
}

const names: Readonly<Record<View, string>> = {
  payments: "Payments",
  channels: "Channels",
  chains: "Chains",
  faults: "Faults",
  setup: "Setup",
};

function TopBar() {
  const ofChains = isLocal.value ? (["chains", "faults"] as const) : [];
  const ofScheme = channels.value.length > 0 || view.value === "channels" ? (["channels"] as const) : [];
  const places = ["payments", ...ofScheme, ...ofChains, "setup"] as const;
  return (
    <header class="top">
      <h1>
        <span class="mark-402">402</span> <span class="name">x402 studio</span>
      </h1>
      <nav aria-label="Views">
        {places.map((name) => (
          <a
            key={name}
            href={hrefOf(name)}
            aria-current={view.value === name ? "page" : undefined}
            onClick={(event) => {
              if (event.ctrlKey || event.metaKey || event.shiftKey) return;
              event.preventDefault();
              show(name);
            }}
          >
            {names[name]}
            {name === "faults" && activeFaults.value.length > 0 && (
              <span class="alarm" title="Active faults">
                {activeFaults.value.length}
              </span>
            )}
          </a>
        ))}
      </nav>
      <span class={connected.value ? "live" : "lost"} role="status">
        {connected.value ? "live" : "connection lost, trying again"}
      </span>
      {isLocal.value && (
        <Button class="primary" onClick={() => (isPayOpen.value = true)}>
          Pay…
        </Button>
      )}
    </header>
  );
}

addEventListener("keydown", (event) => {
  const { target, key } = event;
  // A dialog handles its own keys.
  if (document.querySelector("dialog[open]") !== null) return;
  if (key === "Escape") {
    if (target instanceof HTMLElement) target.blur();
    if (selectedId.value !== null) select(null);
    return;
  }
  if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement) return;
  if (view.value !== "payments") return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (key === "j" || key === "ArrowDown") move(1);
  else if (key === "k" || key === "ArrowUp") move(-1);
  else if (key === "p") paused.value = !paused.value;
  else if (key === "/") document.getElementById("search")?.focus();
  else return;
  event.preventDefault();
});

effect(() => {
  const count = refusals.value;
  document.title = count === 0 ? "x402 studio" : `(${count} refused) x402 studio`;
});

// Any update of a payment may mean that it has opened a channel.
effect(() => {
  void rows.value;
  if (total.value > 0) loadChannelsSoon();
});

followHistory(followFilters());
followSelection();
startClock();
listen();
void loadHarness().then(async () => {
  if (isLocal.value) await loadFaults();
});
followFaults();
const root = document.getElementById("app");
if (root !== null) {
  root.replaceChildren();
  render(<App />, root);
}
