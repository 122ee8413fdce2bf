import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { plural } from "../../../protocol/token-units.ts";
import type { FaultDescription, FaultField } from "../harness-views.ts";
import { Button, Icon, Select } from "./controls.tsx";
import {
  act,
  activeFaults,
  clearFaults,
  type FaultView,
  faultForm,
  faults,
  loadFaultForm,
  loadFaults,
  networkNames,
} from "./local-service.ts";
import { show } from "./page-route.ts";

/**
 * Switches and counters for faults between a shop and the facilitator, between the facilitator and a node, and on the chain.
 */
export function FaultsPane() {
  const chosen = useSignal("");
  useEffect(() => void loadFaultForm(), []);
  const names = networkNames.value;
  const network = chosen.value || names[0] || "";
  const rowsOf = (place: string, where: string) =>
    (faultForm.value?.kinds ?? [])
      .filter(({ places }) => places.includes(where))
      .map((description) => (
        <FaultRow key={`${place} ${description.kind}`} place={place} description={description} />
      ));
  return (
    <div class="pane">
      <header class="pane-head">
        <h2>Faults</h2>
        <p class="soft">Trouble on purpose, to see what a shop and this facilitator make of it.</p>
        <label>
          Network <Select value={network} options={names} onChange={(name) => (chosen.value = name)} />
        </label>
      </header>
      <section class="presets" aria-label="Presets">
        {presetsOf(network).map((preset) => (
          <Preset key={preset.name} preset={preset} />
        ))}
      </section>
      <SetNow />
      <section class="card wide" aria-label="Faults of the facilitator">
        <h3>Between a shop and the facilitator</h3>
        {rowsOf(facilitator, "facilitator")}
      </section>
      <section class="card wide" aria-label="Faults of chains">
        <h3>Between the facilitator and the node of {network}</h3>
        {rowsOf(network, "node")}
        <h3>On the chain {network}</h3>
        {rowsOf(network, "chain")}
      </section>
    </div>
  );
}

/** A switch for a common fault. */
function Preset({ preset }: { preset: FaultPreset }) {
  const { name, means, fault } = preset;
  const set = faults.value.find((one) => isOfPreset(one, preset));
  const toggle = async () => {
    if (set === undefined) await act("/harness/faults/add", fault, `${name}: set.`);
    else await act("/harness/faults/remove", { id: set.id }, `${name}: ended.`);
    await loadFaults();
  };
  return (
    <Button class="preset" role="switch" aria-checked={set !== undefined} aria-label={name} onClick={toggle}>
      <b>{name}</b>
      <span class="soft">{means}</span>
      <span class="state">{set === undefined ? "off" : countOf(set)}</span>
    </Button>
  );
}

/** Every lasting fault, including those set by commands and tests. */
function SetNow() {
  const end = async (id: string, name: string) => {
    await act("/harness/faults/remove", { id }, `${name} has ended.`);
    await loadFaults();
  };
  const list = faults.value;
  return (
    <section class="card wide" aria-label="Faults that are set">
      <h3>Set now</h3>
      {list.length === 0 && <p class="soft">No fault is set.</p>}
      {list.map((fault) => {
        const { id, network, kind } = fault;
        const name = `${kind} (${network})`;
        return (
          <div class="set" key={id}>
            <Button aria-label={`Remove ${name}`} onClick={() => end(id, name)}>
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
      {list.length > 0 && <Button onClick={clearFaults}>Clear all faults</Button>}
    </section>
  );
}

/** A kind of fault on a network or the facilitator: its fields, and the switch that sets and ends it. */
function FaultRow({ place, description }: { place: string; description: FaultDescription }) {
  const { kind, means, lasts, fields } = description;
  // Required fields start with their example, optional ones empty.
  const values = useSignal<Readonly<Record<string, string>>>(
    Object.fromEntries(fields.filter(({ needed }) => needed).map(({ name, example }) => [name, example])),
  );
  const known = faults.value.filter((fault) => fault.kind === kind && fault.network === place);
  const set = known.find(({ usedUp }) => !usedUp);
  // A used-up fault counts as off, but stays listed: removing it would release what it still holds back.
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
        <button type="submit" class="switch" role="switch" aria-checked={set !== undefined} aria-label={what}>
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

/** For requests to the facilitator, the choices are its routes. */
function choicesOf({ name, choices }: FaultField, place: string): readonly string[] {
  return name === "method" && place === facilitator ? (faultForm.value?.facilitatorRoutes ?? []) : choices;
}

/** The value of a field as the request has it; nothing if it is empty. */
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
    return (
      <Select id={id} disabled={disabled} value={value} onChange={onChange} options={choices} none="–" />
    );
  }
  const usual = {
    id,
    disabled,
    required: needed,
    value,
    placeholder: needed ? "" : example,
    onInput: (event: Event & { currentTarget: HTMLInputElement }) => onChange(event.currentTarget.value),
  };
  return type === "integer" ? (
    <input {...usual} type="number" min={least ?? ""} max={most ?? ""} />
  ) : (
    <input {...usual} type="text" />
  );
}

/** A fault that is set with one click. */
type FaultPreset = {
  name: string;
  means: string;
  /** The body for `POST /harness/faults/add`. */
  fault: { network: string; kind: string } & Record<string, string | number>;
};

/** Used in place of a network's name. */
const facilitator = "facilitator";

/** The most useful faults, on a network. */
function presetsOf(network: string): readonly FaultPreset[] {
  const name = network.replace(/\b[a-z]/g, (letter) => letter.toUpperCase()).replaceAll("-", " ");
  return [
    {
      name: `${name} is down`,
      means: "Its node ends every connection: payments get no verdict.",
      fault: { network, kind: "reset" },
    },
    {
      name: "Answer lost once",
      means: "The next settle is done, and its answer never reaches the shop.",
      fault: { network: facilitator, kind: "answer-lost", method: "settle", times: 1 },
    },
    {
      name: `${name} is slow`,
      means: "Each answer of its node comes two seconds late.",
      fault: { network, kind: "delay", ms: 2_000 },
    },
    {
      name: `${name} stands still`,
      means: "No block is mined: settles stay pending until it ends.",
      fault: { network, kind: "hold-blocks" },
    },
    {
      name: "No gas money",
      means: `The operator cannot pay for transactions on ${network}.`,
      fault: { network, kind: "empty-operator" },
    },
    {
      name: "Facilitator overloaded once",
      means: "The next request is answered with 503.",
      fault: { network: facilitator, kind: "status", status: 503, times: 1 },
    },
  ];
}

/** True if a fault was set by this preset. */
function isOfPreset(set: FaultView, { fault }: FaultPreset): boolean {
  return !set.usedUp && Object.entries(fault).every(([name, value]) => set[name] === value);
}

/** The members that every fault has. */
const common = ["id", "network", "kind", "fired", "usedUp"];

/** The settings of a fault: `ms 200, times 1`. */
function detailsOf(fault: FaultView): string {
  const details = Object.entries(fault).filter(([name]) => !common.includes(name));
  return details.map(([name, value]) => `${name} ${String(value)}`).join(", ");
}

/** How often a fault has hit, and whether it is used up. */
function countOf({ fired, usedUp }: FaultView): string {
  return `${usedUp ? "used up, " : ""}hit ${plural(fired, "time")}`;
}

const mostNamed = 3;

/** Shows active faults above every view; otherwise their effects would look like bugs of the shop. */
export function FaultBanner() {
  const active = activeFaults.value;
  if (active.length === 0) return null;
  return (
    <section class="fault-banner" aria-label="Active faults">
      <Icon name="fault" />
      <b>{active.length === 1 ? "A fault is active" : `${active.length} faults are active`}</b>
      <span class="which">
        {active.slice(0, mostNamed).map((fault) => (
          <span key={fault.id}>
            {fault.kind} on {fault.network} <span class="soft">{detailsOf(fault)}</span> · {countOf(fault)}
          </span>
        ))}
        {active.length > mostNamed && <span>and {active.length - mostNamed} more</span>}
      </span>
      <Button onClick={() => show("faults")}>Show</Button>
      <Button onClick={clearFaults}>{active.length === 1 ? "End it" : "End all"}</Button>
    </section>
  );
}
