import { computed, effect, signal } from "@preact/signals";
import { formatAmount } from "../../../protocol/token-units.ts";
import type { PaymentDetail, PaymentSummary } from "../../timeline/payment-view.ts";
import { type Status, statuses, statusOf, statusWords } from "./format.ts";
import { find } from "./local-service.ts";
import { select, selectedId, view, writeQuery } from "./page-route.ts";
import { toast } from "./toasts.tsx";

/** The payments by id, as the event stream has them. A new map for each batch of changes. */
const payments = signal<ReadonlyMap<string, PaymentSummary>>(new Map());

export const connected = signal(false);
/** True if all that had happened before is here: until then the list may look empty though it is not. */
export const isRead = signal(false);
export const paused = signal(false);

const filterNames = ["q", "network", "payer", "status"] as const;

type Filters = Readonly<Record<(typeof filterNames)[number], string>>;

/** The filters of the list; `q` is searched for, and a payer is an address. Empty for all. */
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
/** Why nothing is known here of the payment that is to be shown: the service knows nothing of it, or could not be asked. */
export const whyNoDetail = signal<"unknown" | "not asked" | null>(null);

/** Changes are shown together: a burst of them must not make the page stutter. */
const takeInEveryMs = 50;

/** As many as the service remembers. */
const mostKept = 10_000;

let waiting: PaymentSummary[] = [];
let takesInSoon = false;
let shown: ReadonlyMap<string, PaymentSummary> = new Map();

/** The rows, newest first. While paused they stand still. */
const newestFirst = computed(() => {
  const all = payments.value;
  if (!paused.value) shown = all;
  return [...shown.values()].sort((a, b) => b.firstSeenAt - a.firstSeenAt || b.version - a.version);
});

/** Tells, of what is asked later, whether it was known when this was called. */
export function knowsPayment(): (id: string) => boolean {
  const known = payments.value;
  return (id) => known.has(id);
}

export const total = computed(() => payments.value.size);

/** The payers seen, by address, with their names; those that are known by name first. */
export const payers = computed(() => {
  const names = new Map<string, string | null>();
  for (const { payer, payerName } of payments.value.values()) if (payer !== null) names.set(payer, payerName);
  // Behind every name.
  const keyOf = ([address, name]: [string, string | null]) => name ?? `~${address}`;
  return [...names].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
});

/** Those that pass every filter but that of the status. */
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

/** How many there are of each status, among those that the other filters let pass. */
export const statusCounts = computed(() => {
  const counts = new Map<Status, number>(statuses.map((status) => [status, 0]));
  for (const payment of ofAnyStatus.value) {
    const status = statusOf(payment);
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  return counts;
});

/** How many of all payments were refused. */
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
 * Listens to the event stream. The browser comes back by itself, with the id of the last event it has seen. While the page
 * is hidden for long it does not listen: a browser keeps six connections to a place, and each tab would take one.
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
    // After an answer that is none, a browser does not come back by itself.
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
    // What is known already comes at once.
    setTimeout(() => (isRead.value = true), firstReadMs);
  });
  source.addEventListener("error", () => {
    connected.value = false;
  });
  source.addEventListener("reset", () => {
    waiting = [];
    const hadSome = payments.value.size > 0;
    payments.value = new Map();
    // The first event is one too.
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
    // Behind all others: the first are those that were quiet for the longest time.
    next.delete(payment.id);
    // A 402 that was paid is part of the payment.
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

/** Chooses the row so many places further down. */
export function move(by: number): void {
  const list = rows.value;
  const at = list.findIndex(({ id }) => id === selectedId.value);
  const next = list[Math.min(Math.max(at + by, 0), list.length - 1)];
  if (next !== undefined) select(next.id, { replaces: selectedId.value !== null });
}

/** How often a payment was asked for: the answer to the last question counts, whichever comes last. */
let questions = 0;

/** Asks for the chosen payment. */
export async function loadDetail(): Promise<void> {
  const id = selectedId.value;
  if (id === null) return;
  const question = ++questions;
  const answer = await find<{ payment: PaymentDetail }>(`/payments/${encodeURIComponent(id)}`);
  if (selectedId.value !== id || question !== questions) return;
  const known = detail.value?.id === id ? detail.value : null;
  if (answer === undefined) toast("The service did not answer about this payment.", { isError: true });
  // What was known of it before stays where it could not be asked.
  detail.value = answer === undefined ? known : answer === "unknown" ? null : answer.payment;
  if (detail.value !== null) whyNoDetail.value = null;
  else whyNoDetail.value = answer === "unknown" ? "unknown" : "not asked";
}

/** Loads the details of each payment that is chosen. */
export function followSelection(): void {
  effect(() => {
    if (selectedId.value === null) detail.value = null;
    whyNoDetail.value = null;
    void loadDetail();
  });
}
