import { startUp } from "./up.ts";

/** Process start of the installed `x402-kit up` to ready on five networks, sample payments included: median and range of runs. */
const runs = 7;
const times: number[] = [];
for (let run = 0; run < runs; run++) {
  const from = performance.now();
  const up = await startUp(["--json"], "installed");
  times.push(performance.now() - from);
  await up.stop();
}
const [first = 0, ...warm] = times;
const sorted = warm.sort((a, b) => a - b);
console.log(
  `up, five networks and five payments: first ${first.toFixed(0)} ms; then median ${sorted[Math.floor(sorted.length / 2)]?.toFixed(0)} ms (${sorted[0]?.toFixed(0)}–${sorted.at(-1)?.toFixed(0)}) of ${sorted.length}`,
);
