import { computed, signal } from "@preact/signals";
import { type TokenUnits, unitsOf } from "../../protocol/token-units.ts";
import type { PaymentDetail, PaymentSummary } from "../payment-view.ts";
import { writeFromNow } from "./times.ts";

/** The payments by id, as the event stream tells of them. A new map for each batch of changes. */
const payments = signal<ReadonlyMap<string, PaymentSummary>>(new Map());

export const connected = signal(false);
export const paused = signal(false);
export const filterText = signal("");
export const filterNetwork = signal("");
export const filterOutcome = signal("");
/** An address. */
export const filterPayer = signal("");
export const selectedId = signal<string | null>(readHash());
export const detail = signal<PaymentDetail | null>(null);

/** What the chains are; from `GET /harness`. */
export type HarnessView = {
  facilitator: { url: string };
  organization: { id: string; apiKey: string; recipient: string };
  payers: Record<string, { address: string; privateKey: string }>;
  networks: Record<
    string,
    {
      chainId: number;
      caip2: string;
      /** The mock has no chains. */
      rpcUrl?: string;
      facilitatorContract: string;
      asset: { address: string; name: string; version: string; decimals: number; symbol?: string };
    }
  >;
};
export const harness = signal<HarnessView | null>(null);
/** Whether there are chains to ask; the mock has none. */
export const isLocal = computed(() =>
  Object.values(harness.value?.networks ?? {}).some(({ rpcUrl }) => rpcUrl !== undefined),
);
export const notice = signal("");

/** What the page shows beside the footer. */
export const place = signal<"payments" | "chains" | "faults" | "setup">("payments");

/** The payment in the form, as it is typed. */
export const draft = signal({
  network: "",
  payer: "funded",
  amount: "0.01",
  x402Version: "1",
  validAfter: "0",
  validBefore: writeFromNow(600),
});

/** A chain, from `GET /harness/chains`. */
export type ChainView = {
  network: string;
  blockNumber: number;
  time: number;
  balances: Record<string, string>;
  operatorGasMoney: string;
};
export const chains = signal<readonly ChainView[]>([]);
/** When they were asked, in unix milliseconds. */
let chainsReadAt = 0;

/** A chain's time now, in unix seconds: they go on as the clock does. Undefined where it is not known. */
export function chainTimeOf(network: string): number | undefined {
  const chain = chains.value.find((one) => one.network === network);
  return chain && chain.time + Math.round((Date.now() - chainsReadAt) / 1_000);
}

/** The units of a network's token. */
export function tokenOf(network: string): TokenUnits {
  const asset = harness.value?.networks[network]?.asset;
  return unitsOf(asset ?? { name: "USDC", decimals: 6 });
}

/** A fault that is set, how often it has hit, and what was given for it. */
export type FaultView = { id: string; network: string; kind: string; fired: number } & Record<
  string,
  string | number | boolean
>;
export const faults = signal<readonly FaultView[]>([]);

/** Something that may be said of a fault. */
export type FaultField = {
  name: string;
  means: string;
  type: "integer" | "string" | "boolean";
  needed: boolean;
  isMatch: boolean;
  least: number | null;
  most: number | null;
  choices: readonly string[];
  example: string;
};

/** A kind of fault, from `GET /harness/faults/kinds`. */
export type FaultDescription = {
  kind: string;
  means: string;
  places: readonly string[];
  lasts: boolean;
  fields: readonly FaultField[];
};
export const faultForm = signal<{
  kinds: readonly FaultDescription[];
  facilitatorRoutes: readonly string[];
} | null>(null);

/** Changes are shown together: a burst of them must not make the page stutter. */
const takeInEveryMs = 50;

let waiting: PaymentSummary[] = [];
let takesInSoon = false;
let shown: ReadonlyMap<string, PaymentSummary> = new Map();

/** The rows, newest first. While paused they stand still. */
const newestFirst = computed(() => {
  const all = payments.value;
  if (!paused.value) shown = all;
  return [...shown.values()].sort((a, b) => b.firstSeenAt - a.firstSeenAt || b.version - a.version);
});

export const total = computed(() => payments.value.size);

/** The payers seen, by address, with their names; those that are known by name first. */
export const payers = computed(() => {
  const names = new Map<string, string | null>();
  for (const { payer, payerName } of payments.value.values()) if (payer !== null) names.set(payer, payerName);
  // Behind every name.
  const keyOf = ([address, name]: [string, string | null]) => name ?? `~${address}`;
  return [...names].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
});

/** The rows that pass the filters. */
export const rows = computed(() => {
  const text = filterText.value.trim().toLowerCase();
  return newestFirst.value.filter(
    (payment) =>
      (filterNetwork.value === "" || payment.network === filterNetwork.value) &&
      (filterPayer.value === "" || payment.payer === filterPayer.value) &&
      (filterOutcome.value === "" || kindOf(payment) === filterOutcome.value) &&
      (text === "" || searchable(payment).includes(text)),
  );
});

/** What a payment came to, in one word. */
export function kindOf({
  verify,
  settle,
  unrouted,
}: PaymentSummary): "settled" | "valid" | "refused" | "undecided" | "open" {
  if (unrouted !== null) return "refused";
  const last = settle ?? verify;
  if (last === null || last.outcome === "open") return "open";
  if (last.outcome === "settled") return "settled";
  if (last.outcome === "valid") return "valid";
  return ["pending", "undetermined", "abandoned"].includes(last.outcome) ? "undecided" : "refused";
}

function searchable(payment: PaymentSummary): string {
  const { id, payer, payerName, transaction, verify, settle, unrouted } = payment;
  return [id, payer, payerName, transaction, verify?.reason, settle?.reason, unrouted?.path]
    .join(" ")
    .toLowerCase();
}

/** Listens to the event stream. The browser comes back by itself, with the id of the last event it has seen. */
export function listen(): void {
  const source = new EventSource("/events");
  source.addEventListener("open", () => {
    connected.value = true;
  });
  source.addEventListener("error", () => {
    connected.value = false;
  });
  source.addEventListener("reset", () => {
    waiting = [];
    payments.value = new Map();
  });
  source.addEventListener("payment", (event) => {
    waiting.push(JSON.parse(event.data) as PaymentSummary);
    if (!takesInSoon) setTimeout(takeIn, takeInEveryMs);
    takesInSoon = true;
  });
}

function takeIn(): void {
  takesInSoon = false;
  const next = new Map(payments.value);
  for (const payment of waiting) next.set(payment.id, payment);
  const changed = waiting.some(({ id }) => id === selectedId.value);
  waiting = [];
  payments.value = next;
  if (changed) void loadDetail();
}

export function select(id: string | null): void {
  selectedId.value = id;
  history.replaceState(null, "", id === null ? location.pathname : `#${id}`);
  if (id === null) detail.value = null;
  else void loadDetail();
}

/** Chooses the row so many places further down. */
export function move(by: number): void {
  const list = rows.value;
  const at = list.findIndex(({ id }) => id === selectedId.value);
  const next = list[Math.min(Math.max(at + by, 0), list.length - 1)];
  if (next !== undefined) select(next.id);
}

export async function loadDetail(): Promise<void> {
  const id = selectedId.value;
  if (id === null) return;
  const response = await fetch(`/payments/${id}`);
  if (selectedId.value !== id) return;
  detail.value = response.ok ? ((await response.json()) as { payment: PaymentDetail }).payment : null;
}

export async function loadHarness(): Promise<void> {
  const response = await fetch("/harness");
  if (response.ok) harness.value = (await response.json()) as HarnessView;
}

export async function loadChains(): Promise<void> {
  const response = await fetch("/harness/chains");
  if (!response.ok) return;
  const read = (await response.json()) as ChainView[];
  chainsReadAt = Date.now();
  chains.value = read;
}

export async function loadFaultForm(): Promise<void> {
  const response = await fetch("/harness/faults/kinds");
  if (response.ok) faultForm.value = (await response.json()) as typeof faultForm.value;
}

export async function loadFaults(): Promise<void> {
  const answer = await ask("/harness/faults/list", {});
  if (Array.isArray(answer?.faults)) faults.value = answer.faults as FaultView[];
}

/** Posts to a route of this service, and gives the answer; says what went wrong. */
export async function ask(path: string, body: unknown): Promise<Record<string, unknown> | undefined> {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (response.ok) return answer;
  notice.value = String(answer.error ?? `That failed with status ${response.status}.`);
  return undefined;
}

/** Posts to a control route, and says what came of it. */
export async function act(path: string, body: unknown, done: string): Promise<void> {
  if ((await ask(path, body)) !== undefined) notice.value = done;
}

export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    notice.value = `Copied ${what}.`;
  } catch {
    notice.value = `The browser does not let the page copy ${what}.`;
  }
}

addEventListener("hashchange", () => select(readHash()));

function readHash(): string | null {
  return location.hash.length > 1 ? location.hash.slice(1) : null;
}
