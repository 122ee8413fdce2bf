import { readdirSync, readFileSync } from "node:fs";
import { createHarness } from "../../src/harness/index.ts";
import { type NetworkName, networkNames } from "../../src/protocol/networks.ts";

/** The harness in tests: the time to start, to reset, and to run a hundred tests, and its memory. */
const starts = 10;
const resets = 50;
const tests = 100;

const median = (times: readonly number[]) =>
  [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0;

/** Calls it so often, one after the other, and gives the milliseconds of each. */
async function time(times: number, work: () => Promise<unknown>): Promise<number[]> {
  const took: number[] = [];
  for (let index = 0; index < times; index++) {
    const from = performance.now();
    await work();
    took.push(performance.now() - from);
  }
  return took;
}

async function measure(networks: readonly NetworkName[]): Promise<void> {
  const took: number[] = [];
  for (let index = 0; index < starts; index++) {
    const from = performance.now();
    await using _harness = await createHarness({ networks });
    took.push(performance.now() - from);
  }
  const [first = 0] = took;
  console.log(
    `createHarness, ${networks.length} networks: first ${first.toFixed(0)} ms, median of ${starts} ${median(took).toFixed(0)} ms (${Math.min(...took).toFixed(0)}–${Math.max(...took).toFixed(0)})`,
  );

  await using harness = await createHarness({ networks });
  const pay = () => Promise.all(networks.map((network) => harness.pay({ network })));
  await pay();
  const payAndReset: number[] = [];
  for (let index = 0; index < resets; index++) {
    await pay();
    payAndReset.push(...(await time(1, harness.reset)));
  }
  const reset = median(payAndReset);
  console.log(
    `reset after a payment on each of ${networks.length}: median of ${resets} ${reset.toFixed(1)} ms, ${(reset / networks.length).toFixed(1)} ms per chain`,
  );

  const [total = 0] = await time(1, () =>
    time(tests, async () => {
      await harness.reset();
      const { settle } = await harness.pay({ network: "base" });
      if (settle.body.success !== true) throw new Error("a payment did not settle");
    }),
  );
  console.log(
    `${tests} tests with a reset and a payment each, one after the other: ${(total / 1_000).toFixed(2)} s`,
  );

  const nodes = childrenOf(process.pid).filter(({ command }) => command.includes("anvil"));
  const inNodes = nodes.map(({ pid }) => residentMiB(pid)).reduce((sum, size) => sum + size, 0);
  console.log(
    `memory: ${nodes.length} nodes ${inNodes.toFixed(0)} MiB, this process with service and viem ${residentMiB(process.pid).toFixed(0)} MiB`,
  );
}

/** Resident memory of a process, from /proc. */
function residentMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib ?? 0) / 1024;
}

/** The children of a process, from /proc. */
function childrenOf(pid: number): { pid: number; command: string }[] {
  return readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean))
    .map((child) => ({ pid: Number(child), command: readFileSync(`/proc/${child}/cmdline`, "utf8") }));
}

await measure(["base", "polygon"]);
await measure(networkNames);
