import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { resolveFacilitatorContracts } from "../../../src/harness/setup/addresses.ts";
import { type Chains, startChains } from "../../../src/harness/setup/chains.ts";
import type { HarnessChain } from "../../../src/harness/setup/prepare-chain.ts";
import { networkNames } from "../../../src/protocol/networks.ts";
import { hashesOnChain, inLedger, isPending, judge, type Told } from "../../support/faults/judge.ts";
import { type Kind, kinds } from "../../support/faults/kinds.ts";
import { largePayments } from "../../support/faults/large-payments.ts";
import { createScene, createStage, type Stage } from "../../support/faults/stage.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { type Findings, noFindings, tally } from "../../support/tally.ts";
import { allWays, firstWays, signInWay, type Way, type WayPayment, zeroWay } from "../../support/ways.ts";

/*
 * Payments in every way through every kind of trouble, on real chains: each ends, is answered as the chain shows, and moves money
 * once if it succeeds and never if it fails.
 */

/** How often each kind is tried; the long run sets it to 20. */
const repetitions = Number(process.env.FAULT_REPETITIONS ?? 1);
/** Payments of a run, settled at once. */
const payments = 3;
/** How often a payment is sent again before it counts as lost. */
const mostAttempts = 60;
const { seed } = createRandom();

let chains: Chains;
/** Each serves one run at a time. */
const free: Stage[] = [];
const stages: Stage[] = [];
beforeAll(async () => {
  chains = await startChains({
    networks: networkNames,
    facilitatorContracts: resolveFacilitatorContracts(),
  });
  for (const chain of Object.values(chains.chains)) {
    await chain.mine(deep);
    stages.push(await createStage(chain));
  }
  free.push(...stages);
});
afterAll(async () => {
  await Promise.all(stages.map((stage) => stage.close()));
  await chains.stop();
});

/** Each payment has its own value, by which its transfers are known. */
let value = 10_000n;

const ways = [...allWays, ...firstWays];
/** More blocks than a reorganization takes away, or a stale head is behind. */
const deep = 25;

/** Three ways after one another, another first one for each kind: each kind has its turn at all of them in a long run. */
function wayOf(kind: Kind, index: number, random: Random): Way {
  return ways[(kinds.indexOf(kind) + random.seed + index) % ways.length] ?? zeroWay;
}

async function run(kind: Kind, stage: Stage, random: Random): Promise<Findings> {
  await stage.composition.openDirectory();
  try {
    return await payInTrouble(kind, stage, random);
  } finally {
    await stage.faults.clear();
    await stage.composition.stopAll();
  }
}

async function payInTrouble(
  kind: Kind,
  { composition, url, faults }: Stage,
  random: Random,
): Promise<Findings> {
  const { chain } = composition;
  const rpcUrls: [string, ...string[]] = kind.secondEndpoint === true ? [url, chain.rpcUrl] : [url];
  const running = await composition.start({
    network: composition.configuration({ rpcUrls, confirmations: kind.confirmations ?? 1 }),
    settleWaitMs: kind.settleWaitMs ?? 2_000,
  });
  const before = await composition.recipientBalance();
  const { validForSeconds = 600 } = kind;
  const usual = await Promise.all(
    Array.from({ length: payments }, (_, index) =>
      signInWay(wayOf(kind, index, random), {
        ...{ chain, value: value++, x402Version: index % 2 === 0 ? 1 : 2, validForSeconds },
      }),
    ),
  );
  // A payer of a first payment must have its tokens before the trouble begins, whatever that shows.
  if (usual.some(({ way }) => way.from !== undefined)) await chain.mine(deep);
  const signed = [...(await largePayments(composition, kind.largePayments ?? 0, () => value++)), ...usual];
  const answers = { undecided: 0, pending: 0 };
  const areClaimed = async () => {
    const known = await Promise.all(signed.map((payment) => inLedger(running, payment)));
    return known.every(({ state }) => state !== undefined);
  };
  const scene = await createScene({ composition, faults }, random, answers, areClaimed);
  const held = kind.held === true ? await scene.chain.holdBlocks() : undefined;
  await kind.before?.(scene);

  async function pay(payment: WayPayment): Promise<Told> {
    const { body, verifyBody } = payment;
    const verify = await composition.post(running, "verify", verifyBody);
    const settles = [];
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      const answer = await composition.post(running, "settle", body);
      settles.push(answer);
      if (answer.status === 200)
        return { payment, verify, settles, shown: await hashesOnChain(composition, payment) };
      answers.undecided++;
      if (isPending(answer)) answers.pending++;
      await wait(100);
    }
    return { payment, verify, settles, shown: [] };
  }

  async function trouble(): Promise<void> {
    if (held !== undefined) await scene.sent();
    await kind.during?.(scene);
    await held?.remove();
    await kind.afterwards?.(scene);
    if (kind.during !== undefined) await faults.clear();
  }

  // Together, so that neither fails unheard while the other goes on.
  const [told] = await Promise.all([withBlocks(chain, Promise.all(signed.map(pay))), trouble()]);
  await faults.clear();
  if (kind.afterAnswers !== undefined) {
    await kind.afterAnswers(scene);
    await withBlocks(chain, untilPaid(composition, signed));
  }
  const paid = (await composition.recipientBalance()) - before;
  return judge({ composition, running, kind, paid }, told);
}

/** Vanished transactions come back. Given up after a minute, which {@link judge} then shows. */
async function untilPaid(composition: Stage["composition"], payments: readonly WayPayment[]): Promise<void> {
  const isPaid = async (payment: WayPayment) =>
    payment.due === 0n || (await hashesOnChain(composition, payment)).length > 0;
  for (const end = performance.now() + 60_000; performance.now() < end; await wait(100)) {
    if ((await Promise.all(payments.map(isPaid))).every(Boolean)) break;
  }
  // Until the service has seen it too.
  await wait(1_000);
}

/** A run that was given up after its time has its stage until it ends. */
async function freeStage(): Promise<Stage> {
  for (;;) {
    const stage = free.pop();
    if (stage !== undefined) return stage;
    await wait(50);
  }
}

describe.concurrent(`payments in trouble (seed ${seed})`, () => {
  test.each(kinds)("$name", { timeout: 60_000 * repetitions }, async (kind) => {
    const stage = await freeStage();
    try {
      for (let repetition = 0; repetition < repetitions; repetition++) {
        const findings = await run(kind, stage, createRandom(seed + repetition));
        tally(kind.name, findings);
        expect(findings, `run ${repetition + 1} of ${repetitions}`).toEqual(noFindings);
      }
    } finally {
      free.push(stage);
    }
  });
});

/** Blocks come at the pace that the service is told of, unless they are held. */
async function withBlocks<T>(chain: HarnessChain, awaited: Promise<T>): Promise<T> {
  let done = false;
  const mining = (async () => {
    while (!done) {
      await wait(200);
      if (await chain.isMining()) await chain.mine();
    }
  })();
  try {
    return await awaited;
  } finally {
    done = true;
    await mining;
  }
}
