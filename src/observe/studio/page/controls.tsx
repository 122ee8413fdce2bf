import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { copyText } from "./page-state.ts";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { onClick(): unknown };

/** A button that does something in the page, and sends no form. */
export function Button({ onClick, ...rest }: ButtonProps) {
  return <button type="button" {...rest} onClick={() => void onClick()} />;
}

type SelectProps = {
  value: string;
  onChange(value: string): void;
  /** What may be chosen: values, or values with what is shown of them. */
  options: readonly (string | readonly [value: string, shown: string])[];
  /** What no value is called, where none may be chosen. */
  none?: string;
  label?: string;
  id?: string;
  disabled?: boolean;
};

/** A choice of one of some values. */
export function Select({ value, onChange, options, none, label, ...rest }: SelectProps) {
  return (
    <select
      {...rest}
      aria-label={label}
      value={value}
      onChange={(event) => onChange(event.currentTarget.value)}
    >
      {none !== undefined && <option value="">{none}</option>}
      {options.map((option) => {
        const [name, shown] = typeof option === "string" ? [option, option] : option;
        return (
          <option key={name} value={name}>
            {shown}
          </option>
        );
      })}
    </select>
  );
}

/** Puts a text into the clipboard. */
export function CopyButton({ name, text }: { name: string; text: string }) {
  return (
    <Button class="copy" aria-label={`Copy ${name}`} onClick={() => copyText(text, name)}>
      copy
    </Button>
  );
}

/** Names with what is known of them; what is not known is left out, and what begins with 0x can be copied. */
export function Facts({ facts, ...rest }: { facts: Record<string, unknown>; class?: string }) {
  return (
    <dl {...rest}>
      {Object.entries(facts).map(([name, value]) => {
        if (value === null || value === undefined) return null;
        const text = String(value);
        return (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              {text} {text.startsWith("0x") && <CopyButton name={name} text={text.split(" ")[0] ?? ""} />}
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

/** What is unfolded when it is asked for. */
export function Folded({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <details>
      <summary>{title}</summary>
      {children}
    </details>
  );
}
