import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** What this process holds after a garbage collection, in bytes: its resident size also has what no one needs any more. */
export function memoryInUse(): number {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
