import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import type { FaultDescription, FaultField } from "../fault-form.ts";
import { countOf } from "./fault-count.ts";
import { act, faultForm, faults, loadFaults } from "./state.ts";

/** A kind of fault at a place, which is a network or the facilitator: its fields, and what sets and ends it. */
export function FaultRow({ place, description }: { place: string; description: FaultDescription }) {
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
  return (
    <form
      class="fault-row"
      aria-label={what}
      onSubmit={(event) => {
        event.preventDefault();
        void toggle();
      }}
    >
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
            <summary>only some {place === "facilitator" ? "requests" : "calls"}</summary>
            {inputs(true)}
          </details>
        )}
      </span>
      <span class="number">{shown === undefined ? "" : countOf(shown)}</span>
    </form>
  );
}

/** Requests to the facilitator are told by their route. */
function choicesOf({ name, choices }: FaultField, place: string): readonly string[] {
  return name === "method" && place === "facilitator" ? (faultForm.value?.facilitatorRoutes ?? []) : choices;
}

/** The value of a field as its request has it; nothing where nothing is said. */
function readField({ name, type }: FaultField, value: string): [string, unknown][] {
  if (value === "") return [];
  return [[name, type === "integer" ? Number(value) : type === "boolean" ? true : value]];
}

function Field({
  field,
  choices,
  value,
  isDisabled,
  onChange,
}: {
  field: FaultField;
  choices: readonly string[];
  value: string;
  isDisabled: boolean;
  onChange(value: string): void;
}) {
  const id = useId();
  const { type, means, needed, least, most, example } = field;
  const control = () => {
    if (type === "boolean") {
      return (
        <input
          id={id}
          type="checkbox"
          disabled={isDisabled}
          checked={value !== ""}
          onChange={(event) => onChange(event.currentTarget.checked ? "true" : "")}
        />
      );
    }
    if (choices.length > 0) {
      return (
        <select
          id={id}
          disabled={isDisabled}
          value={value}
          onChange={(event) => onChange(event.currentTarget.value)}
        >
          <option value="">–</option>
          {choices.map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      );
    }
    const common = {
      ...{ id, disabled: isDisabled, required: needed, value, placeholder: needed ? "" : example },
      onInput: (event: Event & { currentTarget: HTMLInputElement }) => onChange(event.currentTarget.value),
    };
    return type === "integer" ? (
      <input {...common} type="number" min={least ?? ""} max={most ?? ""} />
    ) : (
      <input {...common} type="text" />
    );
  };
  return (
    <span class="field">
      {control()} <label for={id}>{means}</label>
    </span>
  );
}
