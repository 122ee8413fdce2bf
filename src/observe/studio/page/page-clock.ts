import { signal } from "@preact/signals";

/** The time that distances such as “12 s ago” are counted from, in unix milliseconds. It stands while nobody looks. */
export const now = signal(Date.now());

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === "visible") now.value = Date.now();
  }, 1_000);
}
