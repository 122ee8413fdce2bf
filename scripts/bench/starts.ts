import { createLocalRpc } from "../../src/chain/rpc/local-rpc.ts";
import { createHarness } from "../../src/harness/index.ts";
import { type NetworkName, networkNames } from "../../src/protocol/networks.ts";
import { startAnvil } from "../../test/support/anvil.ts";
import { median } from "./load.ts";
import { describeMachine, markdownTable, ms } from "./markdown.ts";
import { startUp } from "./up.ts";

const starts = 7;
const resets = 30;

if (import.meta.main) console.log(`${describeMachine()}\n\n${markdownTable(await measureStarts())}`);

/** Starts and resets, in turns with bare nodes doing their part of the work. Medians. */
export async function measureStarts(): Promise<Record<string, string | number>[]> {
  const two: readonly NetworkName[] = ["base", "polygon"];
  // The first start in the process loads the code.
  await startAndEnd(() => createHarness({ networks: two }));
  return [
    await inTurns("`up` with five payments, process start to ready", "five nodes, to listening", {
      ours: () => startAndEnd(() => startUp(["--json"])),
      bare: async () => startBare(5),
    }),
    await inTurns("`createHarness` of two networks, warm", "two nodes, to listening", {
      ours: () => startAndEnd(() => createHarness({ networks: two })),
      bare: async () => startBare(2),
    }),
    await resetsOf(["base"], "reset of one network", "one node: revert, snapshot, block"),
    await resetsOf(networkNames, "reset of five, per chain", "five nodes, per node"),
  ];
}

async function inTurns(
  what: string,
  neighbour: string,
  { ours, bare }: { ours(): Promise<number>; bare(): Promise<number> },
): Promise<Record<string, string | number>> {
  const times: { ours: number[]; bare: number[] } = { ours: [], bare: [] };
  for (let round = 0; round < starts; round++) {
    times.bare.push(await bare());
    times.ours.push(await ours());
  }
  return describe(what, neighbour, times);
}

/** A reset after a payment on each network, next to the same calls to as many idle nodes. */
async function resetsOf(networks: readonly NetworkName[], what: string, neighbour: string) {
  await using harness = await createHarness({ networks });
  const nodes = await startNodes(networks.length);
  const bare = nodes.map(({ url }) => ({ rpc: createLocalRpc(url), snapshot: "0x0" }));
  await Promise.all(bare.map(({ rpc }) => rpc.request("evm_snapshot")));
  const times: { ours: number[]; bare: number[] } = { ours: [], bare: [] };
  for (let round = 0; round < resets; round++) {
    await Promise.all(networks.map((network) => harness.pay({ network })));
    times.ours.push((await timeOf(harness.reset)) / networks.length);
    const took = await timeOf(() =>
      Promise.all(
        bare.map(async (node) => {
          const [, snapshot] = await node.rpc.batch([
            ["evm_revert", node.snapshot],
            ["evm_snapshot"],
            ["evm_mine"],
          ]);
          node.snapshot = String(snapshot);
        }),
      ),
    );
    times.bare.push(took / networks.length);
  }
  for (const node of nodes) await node.stop();
  return describe(what, neighbour, times);
}

function describe(
  what: string,
  neighbour: string,
  { ours, bare }: { ours: readonly number[]; bare: readonly number[] },
): Record<string, string | number> {
  const range = `${ms(Math.min(...ours))}–${ms(Math.max(...ours))}`;
  return { what, "median ms": ms(median(ours)), range, neighbour, "its median ms": ms(median(bare)) };
}

/** The milliseconds that a start takes. */
async function startAndEnd(
  start: () => Promise<{ close(): Promise<void> } | { stop(): Promise<void> }>,
): Promise<number> {
  const from = performance.now();
  const started = await start();
  const took = performance.now() - from;
  await ("close" in started ? started.close() : started.stop());
  return took;
}

/** Empty nodes, which show the part of a figure that is not due to this project. */
function startNodes(count: number) {
  return Promise.all(Array.from({ length: count }, () => startAnvil(31_337)));
}

async function startBare(count: number): Promise<number> {
  const from = performance.now();
  const nodes = await startNodes(count);
  const took = performance.now() - from;
  for (const node of nodes) await node.stop();
  return took;
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const from = performance.now();
  await work();
  return performance.now() - from;
}
