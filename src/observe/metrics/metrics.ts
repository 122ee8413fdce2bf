import type { Address } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { DeliveryFate, PaymentOutcome } from "../channels/channels.ts";

export type PaymentRecord = {
  operation: "verify" | "settle";
  outcome: PaymentOutcome;
  /** Why it is not good, or not answered: one of the invalid reasons, or the name of a problem. */
  reason: string | undefined;
  /** Undefined when the body was not read. */
  x402Version: 1 | 2 | undefined;
  /** Undefined when the request names none that is known. */
  network: NetworkName | undefined;
  seconds: number;
};

/** One HTTP request to a JSON-RPC endpoint that is over. */
export type RpcExchange = {
  /** Which endpoint, by its place in the configuration. Never its URL, which may hold a key. */
  endpoint: string;
  purpose: string;
  durationMs: number;
  /** What was wrong, in a word; undefined when the answer was used. */
  error: string | undefined;
};

/** What one operator of this process has under way on one network. */
export type LaneLoad = {
  network: NetworkName;
  operator: Address;
  /** Transactions that no block is known to hold. */
  transactions: number;
  /** Payments that wait for their turn, unsigned. */
  queued: number;
  /** Transactions that a block held which has vanished from the chain, and that are not mined again yet. */
  vanished: number;
  /** Transactions in blocks that too few RPC endpoints confirm. */
  unconfirmed: number;
  /** Whether its operator has its role, gas money, and its signer, by the last inspection. */
  canSend: boolean;
  isLow: boolean;
};

/** Settlements of one network whose outcome is not known, in the whole ledger. */
export type PendingSettlements = {
  network: NetworkName;
  count: number;
  /** Unix milliseconds at which the oldest was claimed; null when there is none. */
  oldestClaimedAt: number | null;
};

export type OperatorFunds = {
  network: NetworkName;
  operator: Address;
  /** In wei. */
  balance: bigint;
  /** What one settlement may cost now, in wei. */
  transactionCost: bigint;
};

/** Payments of one network that were submitted directly to the token, in the whole ledger, by how far their forwards are. */
export type DirectSubmissions = {
  network: NetworkName;
  state: "queued" | "sent" | "forwarded";
  count: number;
};

/** What is looked up when the metrics are read. */
export type MetricSources = {
  /** Read by every scrape: must cost nothing. */
  lanes(): readonly LaneLoad[];
  pending(): Promise<readonly PendingSettlements[]>;
  directSubmissions(): Promise<readonly DirectSubmissions[]>;
  funds(): Promise<readonly OperatorFunds[]>;
  health(): Promise<Readonly<Record<string, { ready: boolean }>>>;
  /** Requests that are being answered, by operation. Read by every scrape. */
  underWay(): Readonly<Record<"verify" | "settle", number>>;
};

/** Where the parts of the service count. Nothing here throws or waits. */
export type Metrics = {
  payment(record: PaymentRecord): void;
  /** `route` as it was registered, never as it was asked for; undefined when there is none. */
  http(route: string | undefined, status: number): void;
  delivery(fate: DeliveryFate): void;
  /**
   * Counts what one network's RPC client does with its endpoints. `providers` are their hosts, in the order of the
   * configuration.
   */
  rpc(network: NetworkName, providers: readonly string[]): { exchanged(exchange: RpcExchange): void };
  /** Names sources; those named before stay. */
  observe(sources: Partial<MetricSources>): void;
};

const nothing = () => {};

/** Counts nothing. */
export const noMetrics: Metrics = {
  payment: nothing,
  http: nothing,
  delivery: nothing,
  rpc: () => ({ exchanged: nothing }),
  observe: nothing,
};
