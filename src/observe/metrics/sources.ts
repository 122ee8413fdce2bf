import type * as promClient from "prom-client";
import type { Address } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { memoizeFor } from "../../util/cache.ts";
import { withTimeout } from "../../util/waiting.ts";

/** The open transactions of one of this process's operators on one network. */
export type LaneLoad = {
  network: NetworkName;
  operator: Address;
  /** Transactions not known to be in a block. */
  transactions: number;
  /** Queued payments, not yet signed. */
  queued: number;
  /** Transactions whose block was reorganized away and that have not been mined again. */
  vanished: number;
  /** Transactions in blocks that too few RPC endpoints confirm. */
  unconfirmed: number;
  unproven: number;
  /** True if the operator had its role, gas money and its signer at the last inspection. */
  canSend: boolean;
  isLow: boolean;
};

/** Settlements on one network without an outcome, in the whole ledger. */
export type PendingSettlements = {
  network: NetworkName;
  count: number;
  /** When the oldest was claimed, in Unix milliseconds; null if there is none. */
  oldestClaimedAt: number | null;
};

export type OperatorFunds = {
  network: NetworkName;
  operator: Address;
  /** In wei. */
  balance: bigint;
  /** The current cost limit of one settlement, in wei. */
  transactionCost: bigint;
};

/** Payments on one network that were submitted directly to the token, in the whole ledger, by the state of their forwards. */
export type DirectSubmissions = {
  network: NetworkName;
  state: "queued" | "sent" | "forwarded";
  count: number;
};

/** Gas money given for approvals on one network since the day (UTC) began, and its daily limit, in wei. */
export type GiftsOfDay = { network: NetworkName; given: bigint; limit: bigint };

/** The values that are looked up when the metrics are scraped. */
export type MetricSources = {
  /** Read by every scrape, so it must cost nothing. */
  lanes(): readonly LaneLoad[];
  pending(): Promise<readonly PendingSettlements[]>;
  directSubmissions(): Promise<readonly DirectSubmissions[]>;
  gifts(): Promise<readonly GiftsOfDay[]>;
  funds(): Promise<readonly OperatorFunds[]>;
  health(): Promise<Readonly<Record<string, { ready: boolean }>>>;
  /** Requests in progress, by operation. Read by every scrape. */
  underWay(): Readonly<Record<"verify" | "settle", number>>;
};

/** How long a source's result is cached, in milliseconds; funds cost requests to a provider. */
const maxAgeMs = { pending: 5_000, directSubmissions: 5_000, gifts: 5_000, funds: 30_000, health: 5_000 };

/** Prometheus allows a scrape 10 s, so a source that hangs must not delay the others. */
const timeoutMs = 3_000;

/** A gauge: its name, its help text, and its value for one item of its source. */
type Measure<Item> = readonly [name: string, help: string, value: (item: Item) => number];

const ofRequests: readonly Measure<{ count: number }>[] = [
  ["x402_requests_in_flight", "Verify and settle requests that are being answered", ({ count }) => count],
];

const ofLanes: readonly Measure<LaneLoad>[] = [
  [
    "x402_transactions_in_flight",
    "Transactions of this process that no block is known to hold",
    ({ transactions }) => transactions,
  ],
  [
    "x402_queued_payments",
    "Payments of this process that wait unsigned for their turn",
    ({ queued }) => queued,
  ],
  [
    "x402_vanished_transactions",
    "Transactions of this process that a block held which has vanished from the chain, and that are not mined again",
    ({ vanished }) => vanished,
  ],
  [
    "x402_unconfirmed_transactions",
    "Transactions of this process in blocks that fewer than two RPC endpoints have shown for half a minute, or that two say different things of",
    ({ unconfirmed }) => unconfirmed,
  ],
  [
    "x402_unproven_transactions",
    "Transactions of this process in deep blocks whose receipts do not prove what became of every payment",
    ({ unproven }) => unproven,
  ],
  [
    "x402_operator_can_send",
    "1 for an operator that can settle, 0 for one without its role, gas money or signer",
    ({ canSend }) => Number(canSend),
  ],
  [
    "x402_operator_gas_money_low",
    "1 for an operator that can pay for fewer settlements than GAS_HORIZON_PAYMENTS, at the last inspection",
    ({ isLow }) => Number(isLow),
  ],
];

const ofPending = (now: () => number): readonly Measure<PendingSettlements>[] => [
  ["x402_settlements_in_flight", "Settlements in the ledger without an outcome", ({ count }) => count],
  [
    "x402_oldest_pending_settlement_seconds",
    "Age of the oldest settlement in the ledger without an outcome; 0 when there is none",
    ({ oldestClaimedAt }) => (oldestClaimedAt === null ? 0 : Math.max(0, now() - oldestClaimedAt) / 1_000),
  ],
];

const ofDirectSubmissions: readonly Measure<DirectSubmissions>[] = [
  [
    "x402_direct_submissions",
    "Payments in the ledger that somebody submitted directly to the token: queued, sent (the forward is signed) or forwarded",
    ({ count }) => count,
  ],
];

const ofGifts: readonly Measure<GiftsOfDay>[] = [
  [
    "x402_gifts_day_ratio",
    "Gifts to payers since the day (UTC) began, as a share of DAILY_GIFTS: from 0 to 1",
    ({ given, limit }) => (limit > 0n ? Number(given) / Number(limit) : 1),
  ],
];

const ofFunds: readonly Measure<OperatorFunds>[] = [
  ["x402_operator_balance_wei", "Gas money of an operator", ({ balance }) => Number(balance)],
  [
    "x402_operator_balance_transactions",
    "Settlements that an operator can pay for at what one may cost now",
    ({ balance, transactionCost }) => (transactionCost > 0n ? Number(balance / transactionCost) : 0),
  ],
];

const ofHealth: readonly Measure<{ ready: boolean }>[] = [
  [
    "x402_network_ready",
    "1 for a network that can be reached, 0 for one that cannot",
    ({ ready }) => Number(ready),
  ],
];

/**
 * Defines the gauges that are looked up when the metrics are scraped. A source that fails reports no values rather
 * than stale ones, and the failure is counted.
 */
export function observeSources(options: {
  client: Pick<typeof promClient, "Counter" | "Gauge">;
  register: promClient.Registry;
  now: () => number;
}): (added: Partial<MetricSources>) => void {
  const { client, register, now } = options;
  const sources: Partial<MetricSources> = {};
  const failures = new client.Counter({
    name: "x402_metric_source_failures_total",
    help: "Values that could not be looked up, by where they come from",
    labelNames: ["source"],
    registers: [register],
  });

  function lookUp<T>(name: keyof typeof maxAgeMs, ask: () => Promise<T> | undefined) {
    return memoizeFor(
      async (): Promise<T | undefined> => {
        try {
          const asked = ask();
          return asked && (await withTimeout(asked, timeoutMs));
        } catch {
          failures.inc({ source: name });
          return undefined;
        }
      },
      { maxAgeMs: maxAgeMs[name] },
    );
  }

  /** Defines gauges with one value per item of a source; the items carry the labels. */
  function gauges<Item extends Record<Label, string>, Label extends string>(
    labelNames: readonly Label[],
    measures: readonly Measure<Item>[],
    read: () => readonly Item[] | undefined | Promise<readonly Item[] | undefined>,
  ): void {
    for (const [name, help, measure] of measures) {
      new client.Gauge<string>({
        name,
        help,
        labelNames,
        registers: [register],
        async collect() {
          const items = (await read()) ?? [];
          this.reset();
          for (const item of items) {
            const labels = Object.fromEntries(labelNames.map((label) => [label, item[label]]));
            this.set(labels, measure(item));
          }
        },
      });
    }
  }

  const health = lookUp("health", () => sources.health?.());
  const byOperator = ["network", "operator"] as const;
  gauges(["operation"], ofRequests, () =>
    Object.entries(sources.underWay?.() ?? {}).map(([operation, count]) => ({ operation, count })),
  );
  gauges(byOperator, ofLanes, () => sources.lanes?.());
  gauges(
    ["network"],
    ofPending(now),
    lookUp("pending", () => sources.pending?.()),
  );
  gauges(
    ["network", "state"],
    ofDirectSubmissions,
    lookUp("directSubmissions", () => sources.directSubmissions?.()),
  );
  gauges(
    ["network"],
    ofGifts,
    lookUp("gifts", () => sources.gifts?.()),
  );
  gauges(
    byOperator,
    ofFunds,
    lookUp("funds", () => sources.funds?.()),
  );
  gauges(["network"], ofHealth, async () =>
    Object.entries((await health()) ?? {}).map(([network, { ready }]) => ({ network, ready })),
  );

  return (added) => {
    Object.assign(sources, added);
  };
}
