import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import type { FaultDescription, FaultField, FaultView } from "../harness-view.ts";
import { Button, Select } from "./controls.tsx";
import { act, faultForm, faults, harness, loadFaultForm, loadFaults } from "./page-state.ts";

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
  const rowsOf = (place: string, where: string) =>
    (faultForm.value?.kinds ?? [])
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
            <Select value={network} options={names} onChange={(name) => (chosen.value = name)} />
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
      {list.length === 0 && <p class="soft">No fault is set.</p>}
      {list.map((fault) => {
        const { id, network, kind } = fault;
        const name = `${kind} (${network})`;
        return (
          <div class="set" key={id}>
            <Button aria-label={`Remove ${name}`} onClick={() => end("remove", { id }, `${name} has ended.`)}>
              Remove
            </Button>
            <b>{kind}</b>
            <span>
              {network} <span class="soft">{detailsOf(fault)}</span>
            </span>
            <span class="number">{countOf(fault)}</span>
          </div>
        );
      })}
      {list.length > 0 && (
        <Button onClick={() => end("clear", {}, "No fault is set any more.")}>Clear all faults</Button>
      )}
    </section>
  );
}

/** What is shown of every fault. */
const common = ["id", "network", "kind", "fired", "usedUp"];

function detailsOf(fault: FaultView): string {
  const details = Object.entries(fault).filter(([name]) => !common.includes(name));
  return details.map(([name, value]) => `${name} ${String(value)}`).join(", ");
}

/** How often a fault has hit, and whether that was all. */
function countOf({ fired, usedUp }: FaultView): string {
  return `${usedUp ? "used up, " : ""}hit ${fired} ${fired === 1 ? "time" : "times"}`;
}

/** A kind of fault at a place, which is a network or the facilitator: its fields, and what sets and ends it. */
function FaultRow({ place, description }: { place: string; description: FaultDescription }) {
  const { kind, means, lasts, fields } = description;
  // What is needed begins with its example; what is not, with what it is where nothing is said.
  const values = useSignal<Readonly<Record<string, string>>>(
    Object.fromEntries(fields.filter(({ needed }) => needed).map(({ name, example }) => [name, example])),
  );
  const known = faults.value.filter((fault) => fault.kind === kind && fault.network === place);
  const set = known.find(({ usedUp }) => !usedUp);
  // One that is used up is off. It stays listed: removed, what it still holds back would go on.
  const shown = set ?? known.at(-1);
  const what = `${kind} (${place})`;
  const toggle = async () => {
    if (set !== undefined) {
      await act("/harness/faults/remove", { id: set.id }, `${what} is off.`);
    } else {
      const given = fields.flatMap((field) => readField(field, values.value[field.name] ?? ""));
      const body = { network: place, kind, ...Object.fromEntries(given) };
      await act("/harness/faults/add", body, lasts ? `${what} is on.` : `${what} has happened.`);
    }
    await loadFaults();
  };
  const inputs = (isMatch: boolean) =>
    fields
      .filter((field) => field.isMatch === isMatch)
      .map((field) => (
        <Field
          key={field.name}
          field={field}
          choices={choicesOf(field, place)}
          value={values.value[field.name] ?? ""}
          isDisabled={set !== undefined}
          onChange={(value) => (values.value = { ...values.value, [field.name]: value })}
        />
      ));
  const onSubmit = (event: Event) => {
    event.preventDefault();
    void toggle();
  };
  return (
    <form class="fault-row" aria-label={what} onSubmit={onSubmit}>
      {lasts ? (
        <button type="submit" role="switch" aria-checked={set !== undefined} aria-label={what}>
          {set === undefined ? "off" : "on"}
        </button>
      ) : (
        <button type="submit" aria-label={what}>
          do it
        </button>
      )}
      <b>{kind}</b>
      <span>
        <span class="soft">{means}</span>
        {inputs(false)}
        {fields.some(({ isMatch }) => isMatch) && (
          <details>
            <summary>only some {place === facilitator ? "requests" : "calls"}</summary>
            {inputs(true)}
          </details>
        )}
      </span>
      <span class="number">{shown === undefined ? "" : countOf(shown)}</span>
    </form>
  );
}

/** Requests to the facilitator are named by their route. */
function choicesOf({ name, choices }: FaultField, place: string): readonly string[] {
  return name === "method" && place === facilitator ? (faultForm.value?.facilitatorRoutes ?? []) : choices;
}

/** The value of a field as its request has it; nothing where nothing is said. */
function readField({ name, type }: FaultField, value: string): [string, unknown][] {
  if (value === "") return [];
  return [[name, type === "integer" ? Number(value) : type === "boolean" ? true : value]];
}

type FieldProps = {
  field: FaultField;
  choices: readonly string[];
  value: string;
  isDisabled: boolean;
  onChange(value: string): void;
};

function Field(props: FieldProps) {
  const id = useId();
  return (
    <span class="field">
      <Control {...props} id={id} /> <label for={id}>{props.field.means}</label>
    </span>
  );
}

function Control({ field, choices, value, isDisabled: disabled, onChange, id }: FieldProps & { id: string }) {
  const { type, needed, least, most, example } = field;
  if (type === "boolean") {
    const toggle = () => onChange(value === "" ? "true" : "");
    return <input id={id} type="checkbox" disabled={disabled} checked={value !== ""} onChange={toggle} />;
  }
  if (choices.length > 0) {
    return <Select {...{ id, disabled, value, onChange }} options={choices} none="–" />;
  }
  const usual = {
    ...{ id, disabled, required: needed, value, placeholder: needed ? "" : example },
    onInput: (event: Event & { currentTarget: HTMLInputElement }) => onChange(event.currentTarget.value),
  };
  return type === "integer" ? (
    <input {...usual} type="number" min={least ?? ""} max={most ?? ""} />
  ) : (
    <input {...usual} type="text" />
  );
}
