import { signal, useSignal } from "@preact/signals";
import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { formatCount, formatUnits, type TokenUnits } from "../../../protocol/token-units.ts";
import { formatAgo, formatTime, isLongNumber, type Status, shorten, statusWords } from "./format.ts";
import { copyText } from "./local-service.ts";

type ButtonProps = ButtonHTMLAttributes<HTMLButtonElement> & { onClick(): unknown };

/** A button that acts in the page and submits no form. */
export function Button({ onClick, ...rest }: ButtonProps) {
  return <button type="button" {...rest} onClick={() => void onClick()} />;
}

type SelectProps = {
  value: string;
  onChange(value: string): void;
  options: readonly (string | readonly [value: string, shown: string])[];
  /** The label of the empty choice, if there is one. */
  none?: string;
  label?: string;
  id?: string;
  disabled?: boolean;
};

/** A dropdown with one choice of several values. */
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

/** The outcome of a payment: the same icon, color and word everywhere. */
export function Badge({ status }: { status: Status }) {
  return (
    <span class={`badge ${status}`}>
      <Icon name={status} />
      {statusWords[status]}
    </span>
  );
}

/** A relative time, with the time of day as its tooltip. */
export function Ago({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={formatTime(at)}>
      {formatAgo(at, now.value)}
    </time>
  );
}

/** An amount in whole tokens; in a column, the decimal points are aligned. */
export function Amount({ amount, token }: { amount: string; token: TokenUnits | null }) {
  const [whole = "", fraction] = formatUnits(amount, token?.decimals ?? 0).split(".");
  return (
    <span class="amount">
      <span class="whole">{formatCount(whole)}</span>
      <span class="fraction">{fraction === undefined ? "" : `.${fraction}`}</span>{" "}
      <span class="symbol">{token?.symbol ?? "units"}</span>
    </span>
  );
}

const copiedForMs = 1_600;

type CopyProps = { name: string; text: string | (() => Promise<string | undefined>) };

/** Copies a text, and shows so for a moment. */
function useCopy({ name, text }: CopyProps): [isCopied: boolean, copy: () => Promise<void>] {
  const copied = useSignal(false);
  const copy = async () => {
    const found = typeof text === "string" ? text : await text();
    if (found === undefined || !(await copyText(found, name))) return;
    copied.value = true;
    setTimeout(() => (copied.value = false), copiedForMs);
  };
  return [copied.value, copy];
}

/** Copies a text to the clipboard. */
export function CopyButton(props: CopyProps) {
  const [isCopied, copy] = useCopy(props);
  return (
    <Button
      class={`copy ${isCopied ? "done" : ""}`}
      aria-label={isCopied ? `Copied ${props.name}` : `Copy ${props.name}`}
      title={`Copy ${props.name}`}
      onClick={copy}
    >
      <Icon name={isCopied ? "settled" : "copy"} />
    </Button>
  );
}

/** A copy button with a label. */
function CopyTextButton({ children, ...props }: CopyProps & { children: ComponentChildren }) {
  const [isCopied, copy] = useCopy(props);
  return (
    <Button class="with-icon" onClick={copy}>
      <Icon name={isCopied ? "settled" : "copy"} />
      {isCopied ? "Copied" : children}
    </Button>
  );
}

/** A hash or an address, shortened in the middle, with the whole text as tooltip and to copy. Other texts stay unchanged. */
export function Hash({ name, hex }: { name: string; hex: string }) {
  if (!/^0x[0-9a-f]{40,64}$/i.test(hex) && !isLongNumber(hex)) return <>{hex}</>;
  return (
    <span class="hash">
      <code title={hex}>{shorten(hex)}</code>
      <CopyButton name={name} text={hex} />
    </span>
  );
}

/** A command, or another single line, to copy. */
export function CodeLine({ name, text }: { name: string; text: string }) {
  return (
    <span class="code-line">
      <code>{text}</code>
      <CopyButton name={name} text={text} />
    </span>
  );
}

/** Text of several lines to copy. */
export function CodeBlock({ name, text }: { name: string; text: string }) {
  return (
    <div class="code-block">
      <CopyTextButton name={name} text={text}>
        Copy
      </CopyTextButton>
      <pre>{text}</pre>
    </div>
  );
}

/** A list of names and values. Unknown values are left out; hashes and addresses are shortened. */
export function Facts({ facts, ...rest }: { facts: Record<string, unknown>; class?: string }) {
  return (
    <dl {...rest}>
      {Object.entries(facts).map(([name, value]) => {
        if (value === null || value === undefined) return null;
        return (
          <div key={name}>
            <dt>{name}</dt>
            <dd>
              <Hash name={name} hex={String(value)} />
            </dd>
          </div>
        );
      })}
    </dl>
  );
}

/** A text whose names may break after an underscore; shortened hashes stay whole. */
export function breakable(text: string): ComponentChildren {
  return text.split(/(0x\w+…\w+|_)/).map((part, index) => {
    if (index % 2 === 0) return part;
    if (part !== "_") return <span class="whole-word">{part}</span>;
    return ["_", <wbr key={index} />];
  });
}

/** Text with backticked parts as code, and with hashes and addresses shortened. */
export function withCode(text: string): ComponentChildren {
  return text
    .split("`")
    .map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : withHashes(part)));
}

/** Text with hashes and addresses shortened in the middle, each with a copy button. */
export function withHashes(text: string): ComponentChildren {
  return text.split(/(\b0x(?:[0-9a-f]{64}|[0-9a-f]{40})\b)/i).map((part, index) => {
    return index % 2 === 1 ? (
      <Hash key={index} name={part.length > 42 ? "the hash" : "the address"} hex={part} />
    ) : (
      part
    );
  });
}

/** Content that is hidden until expanded. */
export function Folded({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <details class="folded">
      <summary>{title}</summary>
      {children}
    </details>
  );
}

/** A button that opens a menu of actions. */
export function Menu({
  title,
  items,
}: {
  title: string;
  items: readonly { name: string; run(): unknown }[];
}) {
  const isOpen = useSignal(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const onPointer = ({ target }: Event) => {
      if (target instanceof Node && root.current?.contains(target) !== true) isOpen.value = false;
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || !isOpen.value) return;
      // Escape closes only the menu, not what is behind it.
      event.stopPropagation();
      isOpen.value = false;
      root.current?.querySelector("button")?.focus();
    };
    addEventListener("pointerdown", onPointer);
    addEventListener("keydown", onKey, true);
    return () => {
      removeEventListener("pointerdown", onPointer);
      removeEventListener("keydown", onKey, true);
    };
  }, []);
  return (
    <div class="menu" ref={root}>
      <Button
        class="with-icon"
        aria-haspopup="menu"
        aria-expanded={isOpen.value}
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        {title} <Icon name="down" />
      </Button>
      {isOpen.value && (
        <div role="menu">
          {items.map(({ name, run }) => (
            <Button
              role="menuitem"
              key={name}
              onClick={() => {
                isOpen.value = false;
                return run();
              }}
            >
              {name}
            </Button>
          ))}
        </div>
      )}
    </div>
  );
}

type DialogProps = { title: string; onClose(): void; children: ComponentChildren; class?: string };

/** A modal dialog; Escape and a click outside close it. */
export function Dialog({ title, onClose, children, ...rest }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a dialog closes by Escape of itself.
    <dialog
      {...rest}
      ref={dialog}
      aria-label={title}
      onClose={onClose}
      onClick={({ target }) => target === dialog.current && onClose()}
    >
      <div class="dialog-head">
        <h2>{title}</h2>
        <Button class="plain" aria-label="Close" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </div>
      {children}
    </dialog>
  );
}

const shapes = {
  settled: <path d="m3.5 8.5 3 3 6-7" />,
  valid: <path d="M8 2.5 13 4.5v3.5c0 3-2.2 4.8-5 5.5-2.8-.7-5-2.5-5-5.5V4.5z" />,
  refused: <path d="m4 4 8 8m0-8-8 8" />,
  undecided: <path d="M8 3.5v5.5m0 3v.4" />,
  open: <path d="M8 2.5a5.5 5.5 0 1 1-5.5 5.5" />,
  unpaid: <path d="M4 8h8" />,
  copy: (
    <>
      <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
      <path d="M10.5 5.5V4A1.5 1.5 0 0 0 9 2.5H4A1.5 1.5 0 0 0 2.5 4v5A1.5 1.5 0 0 0 4 10.5h1.5" />
    </>
  ),
  to: <path d="M3 8h9.5m-3.5-3.5 3.5 3.5-3.5 3.5" />,
  down: <path d="m4.5 6.5 3.5 3.5 3.5-3.5" />,
  back: <path d="M9.5 3.5 5 8l4.5 4.5" />,
  close: <path d="m4 4 8 8m0-8-8 8" />,
  fault: <path d="M9 2 3.5 9H8l-1 5 5.5-7H8z" />,
  search: (
    <>
      <circle cx="7" cy="7" r="4" />
      <path d="m10 10 3.5 3.5" />
    </>
  ),
} as const satisfies Readonly<Record<string, ComponentChildren>>;

/** A 16 px icon, next to a text or label that says the same. */
export function Icon({ name }: { name: keyof typeof shapes }) {
  return (
    <svg class={`icon icon-${name}`} viewBox="0 0 16 16" aria-hidden="true">
      {shapes[name]}
    </svg>
  );
}

/** The current time for relative times such as “12 s ago”, in Unix milliseconds. Not updated while the page is hidden. */
export const now = signal(Date.now());

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === "visible") now.value = Date.now();
  }, 1_000);
}
