import { setTimeout as wait } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Payer } from "../../../src/harness/control/pay.ts";
import { resolveFacilitatorContracts } from "../../../src/harness/setup/addresses.ts";
import { type Chains, startChains } from "../../../src/harness/setup/chains.ts";
import { createSerialQueue } from "../../../src/util/concurrency.ts";
import { createChannelTraffic } from "../../support/crash/channel-traffic.ts";
import { startFleet } from "../../support/crash/fleet.ts";
import { sharedPostgres } from "../../support/databases.ts";
import { createStage, type Stage } from "../../support/faults/stage.ts";
import { transactionsOfNewest } from "../../support/newest-transactions.ts";
import { createRandom } from "../../support/random.ts";
import { runningChain } from "../../support/running-chain.ts";
import { killServiceProcesses } from "../../support/service-process.ts";
import { noFindings, tally } from "../../support/tally.ts";
import { allWays, firstWays, newPayer, type Way } from "../../support/ways.ts";

/*
 * Two instances under payments, while instances are killed and ended, the way to the node fails in every way, blocks are
 * held and the chain is reorganized, in any order, with payments in every way, through the contract and straight, some of them the
 * first ones of accounts that have approved nothing, and of wallets that are deployed with them; and under channels of
 * batch-settlement from deposit to refund.
 * Judged by the chain when all is over.
 */

const seconds = Number(process.env.MIXED_SECONDS ?? 4);
/** Buyers who pay one payment after the other. */
const buyers = 6;
/** Shops that sell on channels, one after the other. */
const shops = 2;
/** Payers who pay for the first time, spread over the run. */
const newPayers = Math.min(5 * seconds, 1_000);
/** Blocks that are replaced at once, at most. */
const deepest = 5;
/** More than that, and than a stale head is behind. */
const deep = 25;
const random = createRandom();

let chains: Chains;
let stage: Stage;
beforeAll(async () => {
  chains = await startChains({ networks: ["base"], facilitatorContracts: resolveFacilitatorContracts() });
  const base = runningChain(chains, "base");
  await base.mine(deep);
  stage = await createStage(base);
});
afterAll(async () => {
  killServiceProcesses();
  await stage?.close();
  await chains?.stop();
});

test(`${seconds} s of deaths, faults and reorganizations: nothing is lost, paid twice or refused (seed ${random.seed})`, {
  timeout: seconds * 1_000 + 150_000,
}, async () => {
  const { composition, faults, url: rpcUrl } = stage;
  const { node } = composition.chain;
  // They have their tokens before the troubles begin, whatever these show.
  const firsts: { way: Way; payer: Payer }[] = [];
  while (firsts.length < newPayers) {
    const way = firstWays[firsts.length % firstWays.length] ?? firstWays[0];
    firsts.push({ way, payer: await newPayer(way, { chain: composition.chain, value: 1_000_000n }) });
  }
  await composition.chain.mine(deep);
  const database = await (await sharedPostgres()).createDatabase();
  const fleet = await startFleet(composition, database, { size: 2, rpcUrl });

  /**
   * Anvil cannot mine and replace blocks at once, and what it mines by itself it may mine late. So all blocks are asked for,
   * one at a time.
   */
  const alone = createSerialQueue();
  await node.request("evm_setIntervalMining", 0);
  let isHeld = false;
  /** Sets a fault for a moment. */
  const during = async (setting: Promise<{ remove(): Promise<void> }>) => {
    const fault = await setting;
    await wait(random.between(100, 800));
    await fault.remove();
  };
  /** The transactions of all blocks that were replaced. */
  const replaced = new Set<string>();
  const reorganize = (depth: number) =>
    alone(async () => {
      for (const hash of await transactionsOfNewest(node, depth)) replaced.add(hash);
      await faults.chain("base").reorg(depth);
    });
  const { on } = faults;
  const chain = faults.chain("base");
  const troubles: [() => Promise<unknown>, ...(() => Promise<unknown>)[]] = [
    () => fleet.replace(random.between(0, 1), "SIGKILL"),
    () => fleet.replace(random.between(0, 1), "SIGTERM"),
    () => during(on("base").reset()),
    () => during(on("base").status(random.pick([429, 500, 502, 503]))),
    () => during(on("base").malformed(random.pick(["html", "cut-off"]))),
    () => during(on("base").delay(random.between(50, 400))),
    () => during(on("base").staleHead(random.between(3, 10))),
    () => during(on("base", { method: "eth_sendRawTransaction*" }).answerLost()),
    () => during(on("base", { method: "eth_getTransactionReceipt" }).receiptOfAnother({ disguised: true })),
    async () => {
      isHeld = true;
      await wait(random.between(100, 800));
      isHeld = false;
    },
    // The money comes back outside of a block: a reorganization to a block before that would take it for good.
    () => during(chain.emptyOperator()).then(() => alone(() => composition.chain.mine(deepest + 1))),
    () => chain.drop(),
    () => reorganize(random.between(1, deepest)),
    () => reorganize(random.between(1, 3)),
  ];

  let working = true;
  const shop = await createChannelTraffic(composition.chain, fleet.ask, {
    buyers: Math.min(seconds, 400),
    random,
  });
  await alone(() => composition.chain.mine(deep));
  let mining = true;
  const blocks = (async () => {
    while (mining) {
      await wait(200);
      if (!isHeld) await alone(() => node.request("evm_mine"));
    }
  })();
  const from = performance.now();
  const end = from + seconds * 1_000;
  const paying = Array.from({ length: buyers }, async () => {
    while (working) {
      const isDue = (newPayers - firsts.length) / newPayers < (performance.now() - from) / (end - from);
      const first = isDue ? firsts.pop() : undefined;
      await fleet.pay(first?.way ?? random.pick(allWays), first?.payer);
    }
  });
  const selling = Array.from({ length: shops }, async () => {
    while (working) await shop.sell();
  });
  let count = 0;
  while (performance.now() < end) {
    await random.pick(troubles)();
    count++;
    await wait(random.between(0, 300));
  }
  await faults.clear();
  working = false;
  fleet.troubleIsOver();
  await Promise.all([...paying, ...selling]);
  const findings = await fleet.judge(replaced);
  const ofChannels = await shop.finish();
  mining = false;
  await blocks;
  await fleet.stop();
  tally(`mixed troubles, ${fleet.payments} payments, ${count} troubles in ${seconds} s`, findings);
  tally(`mixed troubles, ${shop.channels} channels`, ofChannels);
  expect(findings).toEqual(noFindings);
  expect(ofChannels).toEqual(noFindings);
});
