import { signal } from "@preact/signals";

type Toast = { id: number; text: string; isError: boolean; x: number; y: number };

const toasts = signal<readonly Toast[]>([]);

/** The last message, kept for screen readers, which read it when it changes. */
const lastSaid = signal("");

const shownForMs = 4_500;
const errorShownForMs = 12_000;

let lastId = 0;
/** Where the pointer was last pressed, or the bottom center of the element last used by keyboard. */
let place = { x: innerWidth / 2, y: innerHeight - 80 };

addEventListener("pointerdown", notePointer, true);
addEventListener("keydown", notePlace, true);

function notePointer({ clientX: x, clientY: y }: PointerEvent): void {
  place = { x, y };
}

function notePlace(): void {
  const { left, top, width, height } = document.activeElement?.getBoundingClientRect() ?? new DOMRect();
  if (width > 0 && width < innerWidth) place = { x: left + width / 2, y: top + height };
}

/** Shows the result of an action near where it was triggered. */
export function toast(text: string, { isError = false } = {}): void {
  const id = ++lastId;
  lastSaid.value = text;
  // One at a time: several at the same position would overlap.
  toasts.value = [{ id, text, isError, ...place }];
  setTimeout(() => dismiss(id), isError ? errorShownForMs : shownForMs);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

const width = 340;
const margin = 12;

function raise(element: HTMLElement | null): void {
  if (element?.isConnected === true && !element.matches(":popover-open")) element.showPopover();
}

export function Toasts() {
  return (
    <>
      <output class="unseen">{lastSaid.value}</output>
      {toasts.value.map(({ id, text, isError, x, y }) => (
        <button
          type="button"
          key={id}
          // In the top layer, above an open dialog.
          popover="manual"
          ref={raise}
          class={`toast ${isError ? "bad" : "good"}`}
          style={{
            maxWidth: `min(${width}px, calc(100vw - ${2 * margin}px))`,
            left: `${Math.max(margin, Math.min(x - 40, innerWidth - width - margin))}px`,
            top: `${Math.max(margin, Math.min(y + 16, innerHeight - 110))}px`,
          }}
          title="Dismiss"
          onClick={() => dismiss(id)}
        >
          {text}
        </button>
      ))}
    </>
  );
}
