import { setTimeout as sleep } from "node:timers/promises";
import type { Hex } from "../../../src/protocol/hex.ts";
import { createRandom } from "../random.ts";
import { judgePayments, type Verdict } from "./judge-payments.ts";
import { type Payment, pay, signRandomPayment } from "./payments.ts";
import type { OperatorStage } from "./stage.ts";
import type { Trouble } from "./troubles.ts";

/** How to test a kind of trouble. */
export type Plan = {
  /** How many payments are made, and how many of them begin per second. */
  payments: number;
  perSecond: number;
  /** How long after the end of the last trouble the last payment may be decided, in milliseconds. */
  boundMs: number;
  seed: number;
  /** The amount of the first payment; each later one pays one more. */
  firstValue: bigint;
};

export type TroubleResult = {
  payments: readonly Payment[];
  /** How often the trouble occurred. */
  troubles: number;
  verdict: Verdict;
  /** The time from the end of the last trouble to the last decision; undefined if a payment was never decided. */
  decidedMs: number | undefined;
};

/** How much longer than the bound to wait for responses, to tell late decisions from missing ones. */
const patienceMs = 60_000;

/** More blocks than any reorganization in the table removes. */
const settledBlocks = 5;

/** Pays while a trouble comes and goes, and judges by the chain when everything is over. */
export async function runTrouble(stage: OperatorStage, trouble: Trouble, plan: Plan): Promise<TroubleResult> {
  const { chain, contract, customers, newPayers, instances, origin, blocks } = stage;
  const random = createRandom(plan.seed);
  const payments: Payment[] = [];
  for (let index = 0; index < plan.payments; index++) {
    const value = plan.firstValue + BigInt(index);
    payments.push(await signRandomPayment(random, { chain, contract, customers, newPayers, value }));
  }
  const since = await head(stage);

  let isOver = false;
  let hasTrouble = true;
  let started = 0;
  const paying = (async () => {
    const begun: Promise<void>[] = [];
    for (const payment of payments) {
      begun.push(pay(payment, origin, () => isOver));
      started++;
      await sleep(1_000 / plan.perSecond);
    }
    await Promise.all(begun);
  })();
  const all = paying.then(() => "decided" as const);

  let troubles = 0;
  const [from, to] = trouble.lastsMs;
  await sleep(random.between(200, 800));
  do {
    const end = await trouble.begin(stage, random);
    troubles++;
    await sleep(random.between(from, to));
    await end();
    hasTrouble = started < payments.length;
    if (hasTrouble) await sleep(random.between(500, 2_500));
  } while (started < payments.length);
  const endedAt = performance.now();

  const nobodyWaits = new AbortController();
  const { signal } = nobodyWaits;
  const late = sleep(plan.boundMs + patienceMs, "late" as const, { signal }).catch(() => "late" as const);
  await Promise.race([all, late]);
  isOver = true;
  nobodyWaits.abort();
  await instances.allReady();
  await blocks.next(settledBlocks);

  const verdict = judgePayments(
    payments.map(({ answered }) => answered),
    await stage.transfersSince(since),
    contract,
    { kills: instances.kills, replaced: stage.replaced },
  );
  const lastDecision = Math.max(
    endedAt,
    ...payments.map(({ decidedAt = Number.POSITIVE_INFINITY }) => decidedAt),
  );
  for (const { answered, decidedAt = Number.POSITIVE_INFINITY } of payments) {
    if (decidedAt - endedAt <= plan.boundMs) continue;
    const after = Number.isFinite(decidedAt) ? `after ${seconds(decidedAt - endedAt)} s` : "not decided";
    verdict.undecided.push(`${answered.value} of ${answered.payer}: ${after}`);
  }
  return {
    payments,
    troubles,
    verdict,
    decidedMs: Number.isFinite(lastDecision) ? lastDecision - endedAt : undefined,
  };
}

export function seconds(ms: number): string {
  return (ms / 1_000).toFixed(1);
}

async function head({ chain }: OperatorStage): Promise<number> {
  return Number((await chain.node.request("eth_blockNumber")) as Hex);
}
