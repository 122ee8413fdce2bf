import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { act, faults, harness, loadFaults } from "./state.ts";

type Switch = { kind: string; means: string; more?: object };

/** Faults that need no number, or one that is usual; docs/guides/faults.md has the others. */
const ofChains: readonly Switch[] = [
  {
    kind: "answer-lost",
    means: "transactions arrive, and the node's answer is lost",
    more: { method: "eth_sendRawTransaction*" },
  },
  { kind: "delay", means: "every answer of the node comes 500 ms late", more: { ms: 500 } },
  { kind: "reset", means: "connections to the node are reset" },
  { kind: "rate-limited", means: "the node answers 429" },
  {
    kind: "error",
    means: "the node answers with an error",
    more: { code: -32_000, message: "header not found" },
  },
  { kind: "malformed", means: "the node answers with a page of HTML" },
  { kind: "stale-head", means: "the node is 10 blocks behind", more: { blocks: 10 } },
  { kind: "hang", means: "the node takes requests and never answers" },
  { kind: "hold-blocks", means: "no block is mined" },
  { kind: "empty-operator", means: "the operator has no money for gas" },
];

/** What stands in the place of a network for faults between a shop and the facilitator. */
const facilitator = "facilitator";

const ofFacilitator: readonly Switch[] = [
  { kind: "answer-lost", means: "settles are done, and their answers are lost", more: { method: "settle" } },
  { kind: "delay", means: "every answer comes 500 ms late", more: { ms: 500 } },
  { kind: "reset", means: "connections are reset, and nothing is done" },
  { kind: "rate-limited", means: "every request is answered 429" },
  { kind: "status", means: "every request is answered 503", more: { status: 503 } },
  { kind: "hang", means: "requests are taken and never answered" },
];

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
  if (names.length === 0)
    return <p class="empty">There are no chains here: the mock has scenarios instead.</p>;
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
        <span class="number">{set === undefined ? "" : `hit ${set.fired} times`}</span>
      </div>
    );
  });
}
