import { createHeap } from "./heap.ts";
import { batchGas, cpuMs, cpuShareBefore, type DatabaseCosts, maxBatch, maxUnmined } from "./inputs.ts";

/** A chain with blocks at a pace, or a local node that mines each transaction when it comes. */
export type SimulatedChain = {
  name: string;
  keys: number;
  /** Its part of the payments. */
  weight: number;
  /** A request to its node, ms. */
  requestMs: number;
  confirmations: number;
  /** What of its blocks' gas there is for these payments. */
  blocks: { everyMs: number; gas: number } | { mineMs: number; paymentMs: number; checkMs: number };
  /** The block time by which the service paces itself, ms. */
  pacedByMs: number;
};

export type Scenario = {
  chains: readonly SimulatedChain[];
  /** Processes with a core each. */
  instances: number;
  database: DatabaseCosts;
  recipients: "one recipient" | "distinct recipients";
  /** All at once, or at random times (a Poisson process) with this mean rate, for so long. */
  arrivals: { atOnce: number } | { perSecond: number; seconds: number };
  seed: number;
};

export type SimulatedResult = {
  offered: number;
  settled: number;
  /** Milliseconds from the first payment to the last answer. */
  tookMs: number;
  /** Answers in the last two thirds of the arrivals, a second; all of them over the whole time where all came at once. */
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  perTransaction: number;
  transactions: number;
  /** Of each chain: transactions a block, payments that wait for a transaction at the end of the arrivals. */
  chains: { name: string; settled: number; waiting: number; gasShare: number }[];
  /** The busiest part of the time, 0 to 1. */
  cpuShare: number;
  databaseShare: number;
};

type Payment = { at: number; instance: number };
type Lane = {
  chain: number;
  queue: { payment: Payment; readyAt: number }[];
  unmined: number;
  isSigning: boolean;
  /** When its last broadcast is answered: the next one waits for it. */
  sendFreeAt: number;
  wakeAt: number;
};
type Sent = { lane: Lane; payments: Payment[]; gas: number };

/** For how much of a block time a payment waits for others, while something is under way: `createRelayer`. */
const fillShare = 0.01;
/** How long after all came the simulation goes on, ms. */
const longestTailMs = 600_000;

/**
 * Payments through checks, batches, claims, broadcasts, blocks, conclusions and answers, as `createRelayer` has them. CPU,
 * database and local nodes are queues that serve in order; nothing fails, and there is no reorganization.
 */
export function simulate(scenario: Scenario): SimulatedResult {
  const { chains, instances, database, recipients, arrivals } = scenario;
  const random = createRandom(scenario.seed);
  const agenda = createHeap<() => void>();
  let now = 0;
  const at = (time: number, work: () => void) => agenda.add(time, work);

  const lanes = chains.map(({ keys }, chain) =>
    Array.from(
      { length: keys },
      (): Lane => ({ chain, queue: [], unmined: 0, isSigning: false, sendFreeAt: 0, wakeAt: 0 }),
    ),
  );
  const nextKey = chains.map(() => 0);
  const mempools = chains.map((): Sent[] => []);
  const nodeFreeAt = chains.map(() => 0);
  const blockCounts = chains.map(() => ({ blocks: 0, gas: 0 }));
  const settledOf = chains.map(() => 0);
  const waitingAtEnd = chains.map(() => 0);
  const cpu = createServers(instances);
  const store = createServers(database.atOnce);
  const latencies: number[] = [];
  let transactions = 0;
  let answeredInWindow = 0;
  let lastAnswerAt = 0;
  let offered = 0;

  const seconds = "seconds" in arrivals ? arrivals.seconds : 0;
  const endOfArrivals = seconds * 1_000;
  const windowFrom = endOfArrivals / 3;

  function arrive() {
    const payment = { at: now, instance: offered % instances };
    offered++;
    const lane = pickLane();
    const checked = cpu.serve(payment.instance, now, cpuMs * cpuShareBefore);
    // One round trip for the checks against the chain. A local node simulates between the blocks that it mines.
    at(checked, () => {
      const { requestMs = 0, blocks } = chains[lane.chain] ?? {};
      const isLocal = blocks !== undefined && "mineMs" in blocks;
      const simulated = isLocal ? useNode(lane.chain, blocks.checkMs) : now;
      at(simulated + requestMs, () => {
        lane.queue.push({ payment, readyAt: now });
        leave(lane);
      });
    });
  }

  /** A local node does one thing after the other. Gives when this one is done. */
  function useNode(chain: number, ms: number): number {
    const done = Math.max(now, nodeFreeAt[chain] ?? 0) + ms;
    nodeFreeAt[chain] = done;
    return done;
  }

  function pickLane(): Lane {
    const total = chains.reduce((sum, { weight }) => sum + weight, 0);
    let left = random() * total;
    let chain = chains.findIndex(({ weight }) => {
      left -= weight;
      return left < 0;
    });
    if (chain === -1) chain = chains.length - 1;
    const own = lanes[chain] ?? [];
    const key = (nextKey[chain] ?? 0) % own.length;
    nextKey[chain] = key + 1;
    const lane = own[key];
    if (lane === undefined) throw new RangeError("every chain needs a key");
    return lane;
  }

  function leave(lane: Lane) {
    const [oldest] = lane.queue;
    if (oldest === undefined || lane.isSigning || lane.unmined >= maxUnmined) return;
    const leaveAt = oldest.readyAt + (chains[lane.chain]?.pacedByMs ?? 0) * fillShare;
    if (lane.unmined > 0 && lane.queue.length < maxBatch && leaveAt > now) {
      if (lane.wakeAt > now && lane.wakeAt <= leaveAt) return;
      lane.wakeAt = leaveAt;
      at(leaveAt, () => leave(lane));
      return;
    }
    const payments = lane.queue.splice(0, maxBatch).map(({ payment }) => payment);
    lane.isSigning = true;
    lane.unmined++;
    transactions++;
    const stored = store.serveAny(now, share(database.claimMs, payments.length));
    at(stored, () => {
      // One at a time is on its way; the next is signed and stored meanwhile, and follows it.
      at(Math.max(now, lane.sendFreeAt), () => {
        const requestMs = chains[lane.chain]?.requestMs ?? 0;
        lane.sendFreeAt = now + requestMs;
        lane.isSigning = false;
        at(now + requestMs / 2, () =>
          reachNode({ lane, payments, gas: batchGas(payments.length, recipients) }),
        );
        leave(lane);
      });
    });
  }

  function reachNode(sent: Sent) {
    const { chain } = sent.lane;
    const blocks = chains[chain]?.blocks;
    if (blocks === undefined) return;
    if ("everyMs" in blocks) {
      mempools[chain]?.push(sent);
      return;
    }
    const mined = useNode(chain, blocks.mineMs + sent.payments.length * blocks.paymentMs);
    // Such a node is asked to answer when it has mined: that is the broadcast's answer.
    sent.lane.sendFreeAt = Math.max(sent.lane.sendFreeAt, mined);
    countBlock(chain, sent.gas);
    at(mined, () => {
      noticeMined(sent, now);
      leave(sent.lane);
    });
  }

  function mineBlock(chain: number, everyMs: number, limit: number) {
    const mempool = mempools[chain] ?? [];
    let gas = 0;
    let count = 0;
    for (const sent of mempool) {
      if (gas + sent.gas > limit) break;
      gas += sent.gas;
      count++;
    }
    countBlock(chain, gas);
    const { requestMs = 0 } = chains[chain] ?? {};
    // A receipt is asked for a few times in a block time.
    for (const sent of mempool.splice(0, count)) {
      const noticed = now + requestMs + random() * Math.min(everyMs / 8, 250);
      at(noticed, () => noticeMined(sent, noticed));
    }
    if (now < endOfArrivals + longestTailMs && answered() < offered + (now < endOfArrivals ? 1 : 0)) {
      at(now + everyMs, () => mineBlock(chain, everyMs, limit));
    }
  }

  function noticeMined(sent: Sent, minedAt: number) {
    const { lane, payments } = sent;
    lane.unmined--;
    leave(lane);
    const chain = chains[lane.chain];
    const everyMs = chain !== undefined && "everyMs" in chain.blocks ? chain.blocks.everyMs : 0;
    at(minedAt + ((chain?.confirmations ?? 1) - 1) * everyMs, () => {
      const concluded = store.serveAny(now, share(database.concludeMs, payments.length));
      at(concluded, () => {
        for (const payment of payments) {
          const answered = cpu.serve(payment.instance, now, cpuMs * (1 - cpuShareBefore));
          latencies.push(answered - payment.at);
          lastAnswerAt = Math.max(lastAnswerAt, answered);
          settledOf[lane.chain] = (settledOf[lane.chain] ?? 0) + 1;
          if (answered >= windowFrom && answered < endOfArrivals) answeredInWindow++;
        }
      });
    });
  }

  function countBlock(chain: number, gas: number) {
    const counts = blockCounts[chain];
    if (counts === undefined) return;
    counts.blocks++;
    counts.gas += gas;
  }

  const answered = () => latencies.length;

  if ("atOnce" in arrivals) {
    for (let index = 0; index < arrivals.atOnce; index++) arrive();
  } else {
    const arriveAgain = () => {
      if (now >= endOfArrivals) return;
      arrive();
      at(now - (Math.log(1 - random()) * 1_000) / arrivals.perSecond, arriveAgain);
    };
    at(0, arriveAgain);
    at(endOfArrivals, () => {
      for (const own of lanes.flat()) {
        waitingAtEnd[own.chain] = (waitingAtEnd[own.chain] ?? 0) + own.queue.length;
      }
    });
  }
  for (const [index, { blocks }] of chains.entries()) {
    if (!("everyMs" in blocks)) continue;
    at(random() * blocks.everyMs, () => mineBlock(index, blocks.everyMs, blocks.gas));
  }
  for (let next = agenda.take(); next !== undefined; next = agenda.take()) {
    now = next.at;
    next.item();
  }

  latencies.sort((a, b) => a - b);
  const tookMs = lastAnswerAt;
  return {
    offered,
    settled: latencies.length,
    tookMs,
    perSecond:
      "atOnce" in arrivals
        ? (latencies.length / tookMs) * 1_000
        : (answeredInWindow / (endOfArrivals - windowFrom)) * 1_000,
    p50Ms: latencies[Math.floor(latencies.length * 0.5)] ?? Number.NaN,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
    perTransaction: latencies.length / transactions,
    transactions,
    chains: chains.map(({ name, blocks }, index) => {
      const counts = blockCounts[index] ?? { blocks: 0, gas: 0 };
      const gas = "everyMs" in blocks ? blocks.gas : Number.POSITIVE_INFINITY;
      return {
        name,
        settled: settledOf[index] ?? 0,
        waiting: waitingAtEnd[index] ?? 0,
        gasShare: counts.gas / (counts.blocks * gas),
      };
    }),
    cpuShare: cpu.busyMs() / (instances * tookMs),
    databaseShare: store.busyMs() / (database.atOnce * tookMs),
  };
}

/** The ledger's time for a part of fifty payments: half of it is for the transaction, whatever is in it. */
function share(msForFifty: number, payments: number): number {
  return msForFifty * (0.5 + (0.5 * payments) / 50);
}

/** Servers that each do one thing after the other. */
function createServers(count: number) {
  const freeAt = Array.from({ length: count }, () => 0);
  let busy = 0;
  function serve(server: number, now: number, ms: number): number {
    busy += ms;
    const done = Math.max(now, freeAt[server] ?? 0) + ms;
    freeAt[server] = done;
    return done;
  }
  return {
    serve,
    serveAny: (now: number, ms: number) => serve(freeAt.indexOf(Math.min(...freeAt)), now, ms),
    busyMs: () => busy,
  };
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
