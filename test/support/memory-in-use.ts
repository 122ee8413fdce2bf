import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** The bytes that this process uses after a garbage collection. Its resident size would include garbage. */
export function memoryInUse(): number {
  setFlagsFromString("--expose-gc");
  const collect: () => void = runInNewContext("gc");
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
