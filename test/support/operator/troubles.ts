import { setTimeout as sleep } from "node:timers/promises";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { transactionsOfNewest } from "../newest-transactions.ts";
import type { Random } from "../random.ts";
import { quietFee } from "./blocks.ts";
import type { OperatorStage } from "./stage.ts";

/** A kind of trouble. */
export type Trouble = {
  kind: string;
  /** The trouble, and how it ends. */
  happens: string;
  /** How long it lasts, in milliseconds. A trouble that ends at once is followed by a pause of this length. */
  lastsMs: readonly [from: number, to: number];
  /** Begins the trouble; the returned function ends it, and resolves when it has ended. */
  begin(stage: OperatorStage, random: Random): Promise<() => Promise<unknown>>;
};

const seconds = 1_000;
const broadcasts = "eth_sendRawTransaction*";

/** A fault as a trouble that ends when the fault is removed. */
const removing =
  (set: (stage: OperatorStage, random: Random) => Promise<{ remove(): Promise<void> }>): Trouble["begin"] =>
  async (stage, random) => {
    const fault = await set(stage, random);
    return () => fault.remove();
  };

/** Several faults at once. */
const removingAll =
  (set: (stage: OperatorStage) => readonly Promise<{ remove(): Promise<void> }>[]): Trouble["begin"] =>
  async (stage) => {
    const faults = await Promise.all(set(stage));
    return () => Promise.all(faults.map((fault) => fault.remove()));
  };

function anyOf({ instances }: OperatorStage, random: Random): number {
  return random.between(0, instances.count - 1);
}

const ofTheDatabase: readonly Trouble[] = [
  {
    kind: "database-restarted",
    happens: "Postgres is stopped with all its connections, and started again",
    lastsMs: [500, 4 * seconds],
    async begin({ database: { server } }) {
      await server.halt("stop");
      return () => server.resume();
    },
  },
  {
    kind: "database-killed",
    happens: "all processes of Postgres are killed; started again, it recovers from its log",
    lastsMs: [500, 4 * seconds],
    async begin({ database: { server } }) {
      await server.halt("kill");
      return () => server.resume();
    },
  },
  {
    kind: "database-read-only",
    happens: "Postgres takes no writes until it is set back, as after a failover to a replica",
    lastsMs: [2 * seconds, 8 * seconds],
    async begin({ database: { server, url } }) {
      const set = async (value: "on" | "off") => {
        await server.query(url, `alter system set default_transaction_read_only = ${value}`);
        await server.query(url, "select pg_reload_conf()");
      };
      await set("on");
      return () => set("off");
    },
  },
  {
    kind: "one-cut-off-database",
    happens: "the connections of one instance to the database break until the way is free again",
    lastsMs: [2 * seconds, 8 * seconds],
    begin: (stage, random) => setFate(stage, [anyOf(stage, random)], "cut"),
  },
  {
    kind: "all-cut-off-database",
    happens: "the same for all instances",
    lastsMs: [2 * seconds, 8 * seconds],
    begin: (stage) => setFate(stage, [0, 1, 2], "cut"),
  },
  {
    kind: "one-cut-off-after-commit",
    happens: "one instance's statements are done, and their answers lost, until the way is free again",
    lastsMs: [2 * seconds, 8 * seconds],
    begin: (stage, random) => setFate(stage, [anyOf(stage, random)], "cut after"),
  },
  {
    kind: "one-silent-database",
    happens: "what one instance sends to the database is swallowed; connections of then stay dead",
    lastsMs: [2 * seconds, 8 * seconds],
    begin: (stage, random) => setFate(stage, [anyOf(stage, random)], "swallow"),
  },
  {
    kind: "pooler-killed",
    happens: "the pooler is killed, and started again",
    lastsMs: [500, 4 * seconds],
    begin: ({ database }) => database.pooler.kill(),
  },
];

async function setFate(
  { links }: OperatorStage,
  indexes: readonly number[],
  fate: OperatorStage["links"][number]["fate"],
): Promise<() => Promise<void>> {
  const chosen = links.filter((_, index) => indexes.includes(index));
  for (const link of chosen) link.fate = fate;
  return async () => {
    for (const link of chosen) link.fate = "pass";
  };
}

const ofTheEndpoints: readonly Trouble[] = [
  {
    kind: "first-endpoint-stale",
    happens: "the endpoint asked first shows the chain as it was some blocks ago, until it has caught up",
    lastsMs: [3 * seconds, 8 * seconds],
    begin: removing(({ endpoints }, random) => endpoints.first.on("base").staleHead(random.between(5, 20))),
  },
  {
    kind: "first-endpoint-slow",
    happens: "each of its answers takes three seconds",
    lastsMs: [4 * seconds, 8 * seconds],
    begin: removing(({ endpoints }) => endpoints.first.on("base").delay(3_000)),
  },
  {
    kind: "first-endpoint-silent",
    happens: "it answers nothing; in the end the connections break",
    lastsMs: [4 * seconds, 10 * seconds],
    begin: removing(({ endpoints }) => endpoints.first.on("base").hang()),
  },
  {
    kind: "first-endpoint-rate-limited",
    happens: "it answers HTTP 429 to everything",
    lastsMs: [2 * seconds, 8 * seconds],
    begin: removing(({ endpoints }) => endpoints.first.on("base").rateLimited({ retryAfterSeconds: 1 })),
  },
  {
    kind: "both-endpoints-rate-limited",
    happens: "both do",
    lastsMs: [2 * seconds, 8 * seconds],
    begin: removingAll(({ endpoints: { first, second } }) =>
      [first, second].map((one) => one.on("base").rateLimited({ retryAfterSeconds: 1 })),
    ),
  },
  {
    kind: "both-endpoints-down",
    happens: "all connections to both are reset",
    lastsMs: [2 * seconds, 8 * seconds],
    begin: removingAll(({ endpoints: { first, second } }) =>
      [first, second].map((one) => one.on("base").reset()),
    ),
  },
  {
    kind: "false-failures",
    happens: "the first endpoint gives receipts of reverted transactions under the hashes it is asked for",
    lastsMs: [3 * seconds, 8 * seconds],
    begin: giveFalseFailures,
  },
  {
    kind: "broadcasts-unanswered",
    happens: "both endpoints take transactions, and break the connection instead of an answer",
    lastsMs: [2 * seconds, 8 * seconds],
    begin: removingAll(({ endpoints: { first, second } }) =>
      [first, second].map((one) => one.on("base", { method: broadcasts }).answerLost()),
    ),
  },
];

/** A stranger's reverted transaction comes first in every block, so that its receipt is the one returned. */
async function giveFalseFailures({ chain, endpoints }: OperatorStage): Promise<() => Promise<void>> {
  const { node, asset } = chain;
  let active = true;
  const reverting = (async () => {
    while (active) {
      await node.request("eth_sendTransaction", {
        ...{ from: harnessAccounts.treasury.address, to: asset.address, data: "0xdeadbeef" },
        ...{ gas: "0x186a0", maxPriorityFeePerGas: "0x2540be400", maxFeePerGas: "0x174876e800" },
      });
      await sleep(300);
    }
  })();
  const receipts = endpoints.first.on("base", { method: "eth_getTransactionReceipt" });
  const fault = await receipts.receiptOfAnother({ disguised: true });
  return async () => {
    await fault.remove();
    active = false;
    await reverting;
  };
}

const ofTheChain: readonly Trouble[] = [
  {
    kind: "fees-times-50",
    happens: "every block asks for fifty times the fee, until it is as before",
    lastsMs: [3 * seconds, 10 * seconds],
    async begin({ blocks }) {
      const calm = blocks.ask(50n * quietFee);
      return async () => calm();
    },
  },
  {
    kind: "one-key-dry",
    happens: "the gas money of one of the two operators goes, and comes back",
    lastsMs: [3 * seconds, 8 * seconds],
    begin: removing(({ endpoints }) => endpoints.first.chain("base").emptyOperator()),
  },
  {
    kind: "all-keys-dry",
    happens: "that of both",
    lastsMs: [3 * seconds, 8 * seconds],
    begin: removing(({ endpoints }) => endpoints.second.chain("base").emptyOperator()),
  },
  {
    kind: "no-blocks",
    happens: "no block comes",
    lastsMs: [4 * seconds, 12 * seconds],
    async begin({ blocks }) {
      const release = blocks.hold();
      return async () => release();
    },
  },
  {
    kind: "reorganizations",
    happens:
      "the newest one to three blocks are replaced by empty ones; what was in them is gone from the node",
    lastsMs: [seconds, 3 * seconds],
    async begin({ blocks, chain, endpoints, replaced }, random) {
      const depth = random.between(1, 3);
      await blocks.between(async () => {
        for (const hash of await transactionsOfNewest(chain.node, depth)) replaced.add(hash);
        await endpoints.first.chain("base").reorg(depth);
      });
      return async () => {};
    },
  },
];

const ofTheInstances: readonly Trouble[] = [
  {
    kind: "rolling-restart",
    happens: "each instance is ended by SIGTERM and started again, one after the other",
    lastsMs: [100, seconds],
    async begin({ instances }) {
      for (let index = 0; index < instances.count; index++) {
        await instances.end(index, "SIGTERM");
        await instances.start(index);
      }
      return async () => {};
    },
  },
  {
    kind: "one-instance-killed",
    happens: "one instance is ended by kill -9, and started again",
    lastsMs: [500, 4 * seconds],
    begin: (stage, random) => kill(stage, [anyOf(stage, random)]),
  },
  {
    kind: "all-instances-killed",
    happens: "all are, at once",
    lastsMs: [500, 4 * seconds],
    begin: (stage) => kill(stage, [0, 1, 2]),
  },
  {
    kind: "one-instance-frozen",
    happens: "one instance stands still with all its connections, and then goes on as if nothing had been",
    lastsMs: [3 * seconds, 10 * seconds],
    async begin(stage, random) {
      const thaw = stage.instances.freeze(anyOf(stage, random));
      return async () => thaw();
    },
  },
];

async function kill(
  { instances }: OperatorStage,
  indexes: readonly number[],
): Promise<() => Promise<unknown>> {
  await Promise.all(indexes.map((index) => instances.end(index, "SIGKILL")));
  return () => Promise.all(indexes.map((index) => instances.start(index)));
}

/** All kinds of an operator's trouble. */
export const troubles: readonly Trouble[] = [
  ...ofTheDatabase,
  ...ofTheEndpoints,
  ...ofTheChain,
  ...ofTheInstances,
];
