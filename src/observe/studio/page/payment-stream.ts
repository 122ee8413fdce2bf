import { computed, effect, signal } from "@preact/signals";
import { formatAmount } from "../../../protocol/token-units.ts";
import type { PaymentDetail, PaymentSummary } from "../../timeline/payment-view.ts";
import { type Status, statuses, statusOf, statusWords } from "./format.ts";
import { find } from "./local-service.ts";
import { select, selectedId, view, writeQuery } from "./page-route.ts";
import { toast } from "./toasts.tsx";

/** The payments by id, from the event stream; a new map for each batch of changes. */
const payments = signal<ReadonlyMap<string, PaymentSummary>>(new Map());

export const connected = signal(false);
/** True once all earlier payments have arrived; before that, an empty list does not mean that there are none. */
export const isRead = signal(false);
export const paused = signal(false);

const filterNames = ["q", "network", "payer", "status"] as const;

type Filters = Readonly<Record<(typeof filterNames)[number], string>>;

/** The list's filters; `q` is a search text and `payer` an address. An empty string matches everything. */
export const filters = signal<Filters>(readFilters());

function readFilters(): Filters {
  const query = new URLSearchParams(location.search);
  const read = (name: string) => query.get(name) ?? "";
  return { q: read("q"), network: read("network"), payer: read("payer"), status: read("status") };
}

export function filterBy(change: Partial<Filters>): void {
  filters.value = { ...filters.value, ...change };
}

export function clearFilters(): void {
  filters.value = { q: "", network: "", payer: "", status: "" };
}

/** Keeps the filters in the URL. */
export function followFilters(): () => void {
  effect(() => {
    const set = Object.entries(filters.value).filter(([, value]) => value.trim() !== "");
    if (view.value === "payments") writeQuery(new URLSearchParams(set));
  });
  return () => {
    if (view.value === "payments") filters.value = readFilters();
  };
}

export const detail = signal<PaymentDetail | null>(null);
/** Why the selected payment has no details: it is unknown to the service, or could not be loaded. */
export const whyNoDetail = signal<"unknown" | "not asked" | null>(null);

/** Changes are applied in batches, so that a burst does not make the page stutter. */
const takeInEveryMs = 50;

/** As many as the service keeps. */
const mostKept = 10_000;

let waiting: PaymentSummary[] = [];
let takesInSoon = false;
let shown: ReadonlyMap<string, PaymentSummary> = new Map();

/** The rows, newest first; frozen while paused. */
const newestFirst = computed(() => {
  const all = payments.value;
  if (!paused.value) shown = all;
  return [...shown.values()].sort((a, b) => b.firstSeenAt - a.firstSeenAt || b.version - a.version);
});

/** Takes a snapshot. Returns a function that tells whether a payment was known at the time of the snapshot. */
export function knowsPayment(): (id: string) => boolean {
  const known = payments.value;
  return (id) => known.has(id);
}

export const total = computed(() => payments.value.size);

/** The payers seen, by address, with their names; named payers come first. */
export const payers = computed(() => {
  const names = new Map<string, string | null>();
  for (const { payer, payerName } of payments.value.values()) if (payer !== null) names.set(payer, payerName);
  // Sorts after every name.
  const keyOf = ([address, name]: [string, string | null]) => name ?? `~${address}`;
  return [...names].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
});

/** The payments that pass every filter except the status. */
const ofAnyStatus = computed(() => {
  const { q, network, payer } = filters.value;
  const text = q.trim().toLowerCase();
  return newestFirst.value.filter(
    (payment) =>
      (network === "" || payment.network === network) &&
      (payer === "" || payment.payer === payer) &&
      (text === "" || searchable(payment).includes(text)),
  );
});

/** The rows that pass the filters. */
export const rows = computed(() => {
  const { status } = filters.value;
  return ofAnyStatus.value.filter((payment) => status === "" || statusOf(payment) === status);
});

/** The number of payments per status, among those that pass the other filters. */
export const statusCounts = computed(() => {
  const counts = new Map<Status, number>(statuses.map((status) => [status, 0]));
  for (const payment of ofAnyStatus.value) {
    const status = statusOf(payment);
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return counts;
});

/** The number of refused payments, regardless of filters. */
export const refusals = computed(
  () => [...payments.value.values()].filter((payment) => statusOf(payment) === "refused").length,
);

export const isFiltered = computed(() => Object.values(filters.value).some((value) => value.trim() !== ""));

function searchable(payment: PaymentSummary): string {
  const { id, payer, payerName, network, amount, token, transaction, verify, settle, unrouted, shop } =
    payment;
  const answers = [verify, settle].flatMap((one) =>
    one === null ? [] : [one.outcome, one.reason, one.message],
  );
  const terms = amount === null ? "" : formatAmount(amount, token);
  const status = statusWords[statusOf(payment)];
  return [id, payer, payerName, network, terms, transaction, unrouted?.path, shop?.path, status, ...answers]
    .concat(payment.faults)
    .join(" ")
    .toLowerCase();
}

/**
 * Listens to the event stream. The browser reconnects on its own, with the id of the last event it saw. A page that has been
 * hidden for a while stops listening: a browser opens only six connections per host, and each tab would take one.
 */
export function listen(): void {
  let source: EventSource | undefined = open();
  let timer: ReturnType<typeof setTimeout> | undefined;
  addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.visibilityState === "visible") {
      source ??= open();
      return;
    }
    timer = setTimeout(() => {
      source?.close();
      source = undefined;
    }, hiddenForMs);
  });

  function open(): EventSource {
    const opened = openStream();
    // After an HTTP error, the browser does not reconnect on its own.
    opened.addEventListener("error", () => {
      if (opened.readyState !== EventSource.CLOSED || opened !== source) return;
      setTimeout(() => {
        if (opened === source) source = open();
      }, againAfterMs);
    });
    return opened;
  }
}

const hiddenForMs = 30_000;
const againAfterMs = 1_000;
const firstReadMs = 150;

function openStream(): EventSource {
  const source = new EventSource("/events");
  source.addEventListener("open", () => {
    connected.value = true;
    // Payments that the service already has arrive at once.
    setTimeout(() => (isRead.value = true), firstReadMs);
  });
  source.addEventListener("error", () => {
    connected.value = false;
  });
  source.addEventListener("reset", () => {
    waiting = [];
    const hadSome = payments.value.size > 0;
    payments.value = new Map();
    // The first event is a reset too.
    if (hadSome) void loadDetail();
  });
  source.addEventListener("payment", (event) => {
    waiting.push(JSON.parse(event.data) as PaymentSummary);
    if (!takesInSoon) setTimeout(takeIn, takeInEveryMs);
    takesInSoon = true;
  });
  return source;
}

function takeIn(): void {
  takesInSoon = false;
  const next = new Map(payments.value);
  for (const payment of waiting) {
    // Append it: the first entries are those without changes for the longest time.
    next.delete(payment.id);
    // A 402 that was paid is shown as part of its payment.
    if (payment.paidBy === null) next.set(payment.id, payment);
  }
  for (const id of next.keys()) {
    if (next.size <= mostKept) break;
    next.delete(id);
  }
  const isShown = waiting.some(({ id }) => id === selectedId.value);
  waiting = [];
  payments.value = next;
  if (isShown) void loadDetail();
}

/** Moves the selection down by this many rows. */
export function move(by: number): void {
  const list = rows.value;
  const at = list.findIndex(({ id }) => id === selectedId.value);
  const next = list[Math.min(Math.max(at + by, 0), list.length - 1)];
  if (next !== undefined) select(next.id, { replaces: selectedId.value !== null });
}

/** The number of detail requests; only the answer to the last one counts, whatever order they arrive in. */
let questions = 0;

/** Loads the details of the selected payment. */
export async function loadDetail(): Promise<void> {
  const id = selectedId.value;
  if (id === null) return;
  const question = ++questions;
  const answer = await find<{ payment: PaymentDetail }>(`/payments/${encodeURIComponent(id)}`);
  if (selectedId.value !== id || question !== questions) return;
  const known = detail.value?.id === id ? detail.value : null;
  if (answer === undefined) toast("The service did not answer about this payment.", { isError: true });
  // If the request failed, keep the details known before.
  detail.value = answer === undefined ? known : answer === "unknown" ? null : answer.payment;
  if (detail.value !== null) whyNoDetail.value = null;
  else whyNoDetail.value = answer === "unknown" ? "unknown" : "not asked";
}

/** Loads the details whenever the selection changes. */
export function followSelection(): void {
  effect(() => {
    if (selectedId.value === null) detail.value = null;
    whyNoDetail.value = null;
    void loadDetail();
  });
}
