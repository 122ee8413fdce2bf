import { computed, signal } from "@preact/signals";
import type { MethodView } from "../../../methods/method-view.ts";
import { type TestPayer, testPayers } from "../../../payer/test-payers.ts";
import { type Asset, builtInNetworks } from "../../../protocol/networks.ts";
import { type TokenUnits, unitsOf } from "../../../protocol/token-units.ts";
import type { ChainView, FaultForm } from "../harness-views.ts";
import { toast } from "./toasts.tsx";

/** The command to call where this service was started; the service writes it into the page. */
export const command =
  document.querySelector<HTMLMetaElement>('meta[name="command"]')?.content ?? "npx --no-install x402-kit";

/** The option for commands to find this service; empty at the default address. */
export const atThisPlace = location.origin === "http://127.0.0.1:4402" ? "" : ` --url ${location.origin}`;

type TokenView = Pick<Asset, "address" | "name" | "version" | "decimals" | "symbol" | "transfers">;

/** The service and its chains; from `GET /harness`. */
export type HarnessView = {
  facilitator: { url: string };
  organization: { id: string; apiKey: string; recipient: string };
  /** Undefined if payments may only go to the facilitator contract. */
  payToPolicy?: "contract" | "recipients" | "any";
  payers: Record<string, { address: string; privateKey: string }>;
  networks: Record<
    string,
    {
      chainId: number;
      caip2: string;
      /** Undefined with the mock, which has no chains. */
      rpcUrl?: string;
      facilitatorContract: string;
      payTo: string;
      /** Only for a network that is not built in. */
      nativeCoin?: string;
      asset: TokenView;
      /** Other accepted tokens. */
      tokens?: Record<string, TokenView>;
    }
  >;
};
export const harness = signal<HarnessView | null>(null);

export const networkNames = computed(() => Object.keys(harness.value?.networks ?? {}));

/** True if there are chains to read; the mock has none. */
export const isLocal = computed(() =>
  Object.values(harness.value?.networks ?? {}).some(({ rpcUrl }) => rpcUrl !== undefined),
);

/** A test payer's description in one sentence; empty for a payer unknown to this page. */
export function standsFor(payer: string): string {
  const known: Readonly<Record<string, TestPayer>> = testPayers;
  return Object.hasOwn(known, payer) ? (known[payer]?.standsFor ?? "") : "";
}

export const chains = signal<readonly ChainView[]>([]);
/** When the chains were read, in Unix milliseconds. */
let chainsReadAt = 0;

/** A chain's current time in Unix seconds, extrapolated from the last read; undefined if unknown. */
export function chainTimeOf(network: string): number | undefined {
  const chain = chains.value.find((one) => one.network === network);
  return chain && chain.time + Math.round((Date.now() - chainsReadAt) / 1_000);
}

/** The coin that pays for gas. */
export function coinOf(network: string | null): string {
  const known = network === null ? undefined : harness.value?.networks[network]?.nativeCoin;
  return known ?? builtInNetworks.named(network ?? "")?.nativeCoin ?? "of the chain's own coin";
}

export function tokenOf(network: string): TokenUnits {
  const asset = harness.value?.networks[network]?.asset;
  return unitsOf(asset ?? { name: "USDC", decimals: 6 });
}

/** A fault that is set: how often it has hit, whether it is used up, and its settings. */
export type FaultView = { id: string; network: string; kind: string; fired: number; usedUp?: true } & Record<
  string,
  string | number | boolean | undefined
>;
export const faults = signal<readonly FaultView[]>([]);

/** The faults that can still hit. */
export const activeFaults = computed(() => faults.value.filter(({ usedUp }) => !usedUp));

export const faultForm = signal<FaultForm | null>(null);

/** When a shop last called `GET /supported`, in Unix milliseconds. */
export const shopConnectedAt = signal<number | null>(null);
/** False until the first read: a shop that connected before the page opened is not announced. */
let isShopRead = false;

export async function loadHarness(): Promise<void> {
  harness.value = (await get<HarnessView>("/harness")) ?? harness.value;
}

export async function loadChains(): Promise<void> {
  const read = await get<ChainView[]>("/harness/chains");
  if (read === undefined) return;
  chainsReadAt = Date.now();
  chains.value = read;
}

/** The payment methods, for the pay form. */
export const methods = signal<readonly MethodView[]>([]);

export async function loadMethods(): Promise<void> {
  methods.value = (await get<MethodView[]>("/harness/methods")) ?? methods.value;
}

export async function loadFaultForm(): Promise<void> {
  faultForm.value ??= (await get<FaultForm>("/harness/faults/kinds")) ?? null;
}

export async function loadShop(): Promise<void> {
  const read = await get<{ connectedAt: number | null }>("/shop");
  if (read === undefined) return;
  if (shopConnectedAt.value === null && read.connectedAt !== null && isShopRead)
    toast("A shop has connected.");
  isShopRead = true;
  shopConnectedAt.value = read.connectedAt;
}

/** Undefined if the service does not answer, or not successfully. */
export async function get<T>(path: string): Promise<T | undefined> {
  const found = await find<T>(path);
  return found === "unknown" ? undefined : found;
}

/** Like {@link get}, but returns "unknown" on 404. */
export async function find<T>(path: string): Promise<T | "unknown" | undefined> {
  const response = await fetch(path).catch(() => undefined);
  if (response?.status === 404) return "unknown";
  return response?.ok === true
    ? ((await response.json().catch(() => undefined)) as T | undefined)
    : undefined;
}

export async function loadFaults(): Promise<void> {
  const answer = await post("/harness/faults/list", {}).catch(() => undefined);
  const list: unknown = Object((await answer?.json().catch(() => undefined)) as unknown).faults;
  if (Array.isArray(list)) faults.value = list as FaultView[];
}

const lookEveryMs = 1_000;

/** Keeps the faults up to date while the page is visible, since tests and commands set them too. */
export function followFaults(): void {
  setInterval(() => {
    if (isLocal.value && document.visibilityState === "visible") void loadFaults();
  }, lookEveryMs);
}

function post(path: string, body: unknown): Promise<Response> {
  return fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** Posts to a route of this service and returns the answer. Shows an error and returns undefined if that fails. */
export async function ask(path: string, body: unknown): Promise<Record<string, unknown> | undefined> {
  const response = await post(path, body).catch(() => undefined);
  if (response === undefined) {
    toast("The service does not answer.", { isError: true });
    return undefined;
  }
  const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (response.ok) return answer;
  const hints = Array.isArray(answer.hints) ? answer.hints : [];
  const said = [answer.error ?? `That failed with status ${response.status}.`, ...hints].join(" ");
  toast(said, { isError: true });
  return undefined;
}

/** Posts to a control route and shows the result; returns true if it succeeded. */
export async function act(path: string, body: unknown, done: string): Promise<boolean> {
  if ((await ask(path, body)) === undefined) return false;
  toast(done);
  return true;
}

/** Ends every fault, and says so. */
export async function clearFaults(): Promise<void> {
  await act("/harness/faults/clear", {}, "No fault is set any more.");
  await loadFaults();
}

/** Copies a text to the clipboard. Shows an error and returns false if the browser does not allow it. */
export async function copyText(text: string, what: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    toast(`The browser does not let the page copy ${what}.`, { isError: true });
    return false;
  }
}
