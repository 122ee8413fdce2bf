import type { NetworkName } from "../../protocol/networks.ts";
import { type SignedPayment, settlementId } from "../../protocol/signed-payment.ts";
import { exitCodeOf, isBad, type Report, worstFirst } from "../frame/report.ts";
import type { CaseRow, Finding } from "../frame/run-cases.ts";
import type { Scene, SceneOptions, TokenTransfer } from "./scene.ts";

/** The options that the judges of clients and of shops share. */
export type JudgeOptions = Pick<SceneOptions, "knownNetworks" | "networkFile" | "studio" | "signal"> & {
  /** The networks to judge on, one after the other. */
  networks: readonly NetworkName[];
  /** A header that every request must carry. */
  header?: { name: string; value: string } | undefined;
  /** How long the client may run per case, or how long the shop may take until its first response. */
  timeoutMs: number;
  /** Determines the payers' keys and the goods. */
  seed: number;
};

/** The facts that judges of clients and of shops share. */
export type PurchaseFacts = {
  /** Every transfer from the payer on chain. */
  transfers: readonly TokenTransfer[];
  services: number;
  /** Every request and its response, in order. */
  exchanges: readonly string[];
  /** Links to the payments in the studio, if it runs. */
  links: readonly string[];
};

export type Exchange = {
  /** Milliseconds since the start of the case. */
  atMs: number;
  request: string;
  /** A description of the payment in it; empty for requests that cannot carry one. */
  payment: string;
  answer: string;
};

/** Records the requests of one case. Payments are numbered from 1; a repeated one keeps its number. */
export function createExchangeLog({ studioUrl }: Pick<Scene, "studioUrl">) {
  const startedAt = performance.now();
  const exchanges: Exchange[] = [];
  const nonces: string[] = [];
  const links = new Set<string>();
  return {
    /** Begins an exchange that has no payment and no response yet. */
    begin(request: string): Exchange {
      const atMs = Math.round(performance.now() - startedAt);
      const exchange = { atMs, request, payment: "without payment", answer: "no answer" };
      exchanges.push(exchange);
      return exchange;
    },
    /** Describes a payment: its number, amount and recipient. */
    describe(
      { nonce, nonceSpace, payer, limit, payTo }: SignedPayment,
      chainId: number,
      network: string,
    ): string {
      if (!nonces.includes(nonce)) nonces.push(nonce);
      const id = settlementId(chainId, nonceSpace, payer, nonce);
      if (studioUrl !== undefined) links.add(`${studioUrl}#${id}`);
      return `with payment ${nonces.indexOf(nonce) + 1}: ${limit} to ${payTo.slice(0, 8)}… on ${network}`;
    },
    /** The number of distinct payments. */
    get payments() {
      return nonces.length;
    },
    lines: () =>
      exchanges.map(
        ({ atMs, request, payment, answer }) =>
          `+${(atMs / 1_000).toFixed(1)} s  ${request} ${payment && `${payment} `}→ ${answer}`,
      ),
    links: () => [...links],
  };
}

/** Folds consecutive requests that differ only in time into one line with their count and the time of the last. */
export function foldRepeats(exchanges: readonly string[]): string[] {
  const folded: { line: string; what: string; times: number; last: string }[] = [];
  for (const line of exchanges) {
    const [, last = "", what = line] = /^(\+\S+ s) {2}(.*)$/.exec(line) ?? [];
    const before = folded.at(-1);
    if (before?.what === what) Object.assign(before, { times: before.times + 1, last });
    else folded.push({ line, what, times: 1, last });
  }
  return folded.map(({ line, times, last }) =>
    times === 1 ? line : `${line} (${times} times, the last at ${last})`,
  );
}

/** Describes the events of a case for its report. */
export function describePurchase({ exchanges, links }: PurchaseFacts): string[] {
  return [
    ...foldRepeats(exchanges),
    ...links.map((link, index) => `payment ${index + 1} in the studio: ${link}`),
  ];
}

/** Makes a case of a row on a network. With several networks or payment methods, its name includes them. */
export function caseOn(
  { name, situation, good, order }: CaseRow,
  on: { network: NetworkName; way: string },
  { networks, ways = [] }: { networks: readonly NetworkName[]; ways?: readonly string[] | undefined },
) {
  const where = [...(networks.length > 1 ? [on.network] : []), ...(ways.length > 1 ? [on.way] : [])];
  const placed = where.length === 0 ? name : `${name} (${where.join(", ")})`;
  return { name: placed, situation, good, order, suite: on.network };
}

/** The judged program, the networks, and the seed of a run. */
export type Purchases = {
  subject: string;
  networks: readonly NetworkName[];
  seed: number;
  findings: readonly Finding<PurchaseFacts>[];
  problem?: string | undefined;
};

/** The report on a client or a shop, worst finding first. */
export function reportPurchases({ subject, networks, seed, findings: found, problem }: Purchases): Report {
  const findings = worstFirst(found);
  return {
    title: `x402 judgment of ${subject} on ${networks.join(", ")}`,
    noun: "case",
    findings,
    table: {
      columns: ["case", { right: "paid" }, { right: "had" }, "verdict"],
      rows: findings.map(({ name, facts, text, level }) => [
        name,
        `${facts?.transfers.length ?? 0}`,
        `${facts?.services ?? 0}`,
        level === "wrong" ? inCapitals(text) : text,
      ]),
    },
    advice: findings.some(isBad) ? `The same run again: --seed ${seed}` : undefined,
    problem,
    exitCode: exitCodeOf({ findings, problem }),
    json: { subject, seed, findings: findings.map(describe), problem },
  };
}

/** The short form of a verdict for the table; the full text is below it. */
function inCapitals(verdict: string): string {
  return verdict.replace(/ (although|than) .*/, "").toUpperCase();
}

function describe({ facts, ...finding }: Finding<PurchaseFacts>) {
  const {
    name,
    suite: network,
    verdict,
    text: verdictText,
    level,
    situation,
    good: safe,
    notes,
    tookMs,
  } = finding;
  const { transfers = [], services = 0, exchanges = [], links = [] } = facts ?? {};
  return {
    name,
    network,
    verdict,
    verdictText,
    level,
    situation,
    safe,
    transfers: transfers.map(({ amount, ...transfer }) => ({ ...transfer, amount: `${amount}` })),
    services,
    exchanges,
    links,
    notes,
    tookMs,
  };
}
