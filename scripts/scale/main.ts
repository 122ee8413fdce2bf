import { renderTable } from "../../src/util/table.ts";
import { batchGas, chains, databases, localNode, maxBatch, maxUnmined, requestMs } from "./inputs.ts";
import { type Scenario, type SimulatedChain, type SimulatedResult, simulate } from "./simulate.ts";

/*
 * Capacity on paper, and the simulation that docs/scale.md speaks of:
 *
 *   npm run scale [SEED]
 */

type RealChain = { blockMs: number; blockGas: number; confirmations: number };

const seed = Number(process.argv[2] ?? 1);
const two = ["one recipient", "distinct recipients"] as const;

console.log("Capacity: payments a second\n");
console.log(
  renderTable(
    [
      "chain",
      { right: "a key" },
      { right: "all gas, one recipient" },
      { right: "all gas, distinct" },
      { right: "a quarter of it, distinct" },
      { right: "keys for that" },
    ],
    Object.entries(chains).map(([name, { blockMs, blockGas }]) => {
      const ofKey = (maxUnmined * maxBatch * 1_000) / blockMs;
      const [one = 0, distinct = 0] = two.map(
        (recipients) => ((blockGas / batchGas(maxBatch, recipients)) * maxBatch * 1_000) / blockMs,
      );
      return [
        name,
        ...[ofKey, one, distinct, distinct / 4].map((rate) => rate.toFixed(0)),
        String(Math.ceil(distinct / 4 / ofKey)),
      ];
    }),
  ),
);

const local: SimulatedChain = {
  name: "a local node",
  keys: 1,
  weight: 1,
  requestMs: 2,
  confirmations: 1,
  blocks: localNode,
  pacedByMs: 2_000,
};
const small = {
  chains: [local],
  instances: 1,
  database: databases.sqlite,
  recipients: "one recipient",
  seed,
} as const;

console.log("\nThe model beside the bench (decision 0026: 1,000 at once on one key, SQLite)\n");
print([
  ["1,000 at once", { ...small, arrivals: { atOnce: 1_000 } }],
  ["one every 50 ms or so", { ...small, arrivals: { perSecond: 20, seconds: 20 } }],
]);

const remote = (name: string, source: RealChain, keys: number, gasShare: number) => ({
  name,
  keys,
  weight: source.blockGas,
  requestMs,
  confirmations: source.confirmations,
  blocks: { everyMs: source.blockMs, gas: source.blockGas * gasShare },
  pacedByMs: source.blockMs,
});
const large = {
  instances: 16,
  database: { ...databases.postgres, atOnce: 32 },
  recipients: "one recipient",
  arrivals: { perSecond: 10_000, seconds: 30 },
  seed,
} as const;
const several = (count: number, keys: number): SimulatedChain[] =>
  Array.from({ length: count }, (_, index) =>
    remote(`chain ${index + 1}`, { ...chains.base, blockGas: 300_000_000 }, keys, 0.5),
  );
const mainnets = [
  remote("base", chains.base, 4, 1),
  remote("optimism", chains.optimism, 2, 1),
  remote("polygon", chains.polygon, 2, 1),
];

console.log("\n10,000 payments a second, for 30 s\n");
print([
  ["the three mainnets, all their gas", { ...large, chains: mainnets }],
  ["8 chains, half of 150 Mgas/s, 2 keys each", { ...large, chains: several(8, 2) }],
  ["8 chains, 4 keys each", { ...large, chains: several(8, 4) }],
  ["the same with 10 instances", { ...large, chains: several(8, 4), instances: 10 }],
  ["the same, 4 claims of Postgres at once", { ...large, chains: several(8, 4), database: databases4() }],
  ["one of the 8 chains with 1 key", { ...large, chains: [...several(7, 4), ...several(1, 1)] }],
]);

function databases4() {
  return { ...databases.postgres, atOnce: 4 };
}

function print(runs: readonly (readonly [string, Scenario])[]): void {
  const row = (name: string, result: SimulatedResult) => {
    const waiting = result.chains.reduce((sum, chain) => sum + chain.waiting, 0);
    const gasShare = Math.max(...result.chains.map((chain) => chain.gasShare));
    return [
      name,
      `${result.settled} of ${result.offered}`,
      result.perSecond.toFixed(0),
      result.p50Ms.toFixed(0),
      result.p99Ms.toFixed(0),
      result.perTransaction.toFixed(1),
      String(waiting),
      percent(result.cpuShare),
      percent(result.databaseShare),
      percent(gasShare),
    ];
  };
  console.log(
    renderTable(
      [
        "",
        "settled",
        ...["per s", "p50 ms", "p99 ms", "in a tx", "waiting", "CPU", "database", "gas"].map((right) => ({
          right,
        })),
      ],
      runs.map(([name, scenario]) => row(name, simulate(scenario))),
    ),
  );
}

function percent(part: number): string {
  return `${(part * 100).toFixed(0)} %`;
}
