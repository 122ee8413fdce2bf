import { computed, signal } from "@preact/signals";
import { forTimes, type PaymentTimes } from "../../../methods/exact-eip3009/payment-times.ts";
import { builtInNetworks } from "../../../protocol/networks.ts";
import { formatAmount, type TokenUnits, unitsOf } from "../../../protocol/token-units.ts";
import type { FaultForm } from "../fault-form.ts";
import type { PaymentDetail, PaymentSummary } from "../payment-view.ts";
import { usualTime } from "./format.ts";
import type { PayKind } from "./snippets.ts";

/** How the command is called where this service was started; the service writes it into the page. */
export const command =
  document.querySelector<HTMLMetaElement>('meta[name="command"]')?.content ?? "npx x402-facilitator-kit";

/** Where a command finds this service, if that is not where it looks anyway. */
export const atThisPlace = location.origin === "http://127.0.0.1:4402" ? "" : ` --url ${location.origin}`;

/** The payments by id, as the event stream has them. A new map for each batch of changes. */
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
  /** Only where payments may go elsewhere than to the facilitator contract. */
  payToPolicy?: "contract" | "recipients" | "any";
  payers: Record<string, { address: string; privateKey: string }>;
  networks: Record<
    string,
    {
      chainId: number;
      caip2: string;
      /** The mock has no chains. */
      rpcUrl?: string;
      facilitatorContract: string;
      payTo: string;
      /** Only of a network that is not built in. */
      nativeCoin?: string;
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
export const draft = signal<Draft>({
  network: "",
  payer: "funded",
  amount: "0.01",
  kind: "eip3009",
  x402Version: "1",
  times: forTimes(usualTime),
});

type Draft = Record<"network" | "payer" | "amount" | "x402Version", string> & {
  kind: PayKind;
  times: PaymentTimes<string>;
};

/** Whom to fund on a network, with how much in whole tokens, where a refused payment asks for it. */
export const funding = signal<{ network: string; payer: string; amount: string } | null>(null);

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

/** What gas is paid in. */
export function coinOf(network: string | null): string {
  const known = network === null ? undefined : harness.value?.networks[network]?.nativeCoin;
  return known ?? builtInNetworks.named(network ?? "")?.nativeCoin ?? "of the chain's own coin";
}

/** The units of a network's token. */
export function tokenOf(network: string): TokenUnits {
  const asset = harness.value?.networks[network]?.asset;
  return unitsOf(asset ?? { name: "USDC", decimals: 6 });
}

/** A fault that is set, how often it has hit, whether it can hit once more, and what was given for it. */
export type FaultView = { id: string; network: string; kind: string; fired: number; usedUp?: true } & Record<
  string,
  string | number | boolean | undefined
>;
export const faults = signal<readonly FaultView[]>([]);

export const faultForm = signal<FaultForm | null>(null);

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

export const isFiltered = computed(() =>
  [filterText, filterNetwork, filterPayer, filterOutcome].some(({ value }) => value.trim() !== ""),
);

export function clearFilters(): void {
  for (const filter of [filterText, filterNetwork, filterPayer, filterOutcome]) filter.value = "";
}

/** What a payment came to, in one word. */
export function kindOf({
  verify,
  settle,
  unrouted,
  settledAt,
}: PaymentSummary): "settled" | "valid" | "refused" | "undecided" | "open" {
  if (unrouted !== null) return "refused";
  const last = settle ?? verify;
  if (last === null || last.outcome === "open") return "open";
  // What was settled stays so, whatever is answered to the same payment later.
  if (last.outcome === "settled" || settledAt !== null) return "settled";
  if (last.outcome === "valid") return "valid";
  return ["pending", "undetermined", "abandoned"].includes(last.outcome) ? "undecided" : "refused";
}

function searchable(payment: PaymentSummary): string {
  const { id, payer, payerName, network, amount, token, transaction, verify, settle, unrouted } = payment;
  const answers = [verify, settle].flatMap((one) =>
    one === null ? [] : [one.outcome, one.reason, one.message],
  );
  const terms = amount === null ? "" : formatAmount(amount, token);
  return [id, payer, payerName, network, terms, transaction, unrouted?.path, ...answers]
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

function openStream(): EventSource {
  const source = new EventSource("/events");
  source.addEventListener("open", () => {
    connected.value = true;
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
    next.set(payment.id, payment);
  }
  for (const id of next.keys()) {
    if (next.size <= mostKept) break;
    next.delete(id);
  }
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
  const answer = await get<{ payment: PaymentDetail }>(`/payments/${encodeURIComponent(id)}`);
  if (selectedId.value === id) detail.value = answer?.payment ?? null;
}

export async function loadHarness(): Promise<void> {
  harness.value = (await get<HarnessView>("/harness")) ?? harness.value;
}

export async function loadChains(): Promise<void> {
  const read = await get<ChainView[]>("/harness/chains");
  if (read === undefined) return;
  chainsReadAt = Date.now();
  chains.value = read;
}

export async function loadFaultForm(): Promise<void> {
  faultForm.value =
    (await get<NonNullable<typeof faultForm.value>>("/harness/faults/kinds")) ?? faultForm.value;
}

/** Undefined where the service does not answer, or not with what was asked for. */
async function get<T>(path: string): Promise<T | undefined> {
  const response = await fetch(path).catch(() => undefined);
  return response?.ok === true ? ((await response.json()) as T) : undefined;
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
  }).catch(() => undefined);
  if (response === undefined) {
    notice.value = "The service does not answer.";
    return undefined;
  }
  const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (response.ok) return answer;
  const hints = Array.isArray(answer.hints) ? answer.hints : [];
  notice.value = [answer.error ?? `That failed with status ${response.status}.`, ...hints].join(" ");
  return undefined;
}

/** Says how an amount is written. */
export function noticeAmount(decimals: number): void {
  notice.value = `An amount is digits with at most ${decimals} behind the point, such as 0.01.`;
}

/** Pays as a test payer, and says what came of it. */
export async function pay(payment: object): Promise<void> {
  const answer = await ask("/harness/pay", payment);
  if (answer === undefined) return;
  const settle = Object(answer.settle) as Record<string, unknown>;
  notice.value =
    settle.success === true
      ? "Paid and settled."
      : `Not settled: ${settle.errorReason ?? "the outcome is not known"}. The list says why.`;
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
