import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { anvilBinary } from "../../src/harness/nodes/anvil-binary.ts";

/** Empty nodes, which show the part of a figure that is not due to this project. */
export type BareNodes = { urls: readonly string[]; tookMs: number; stop(): Promise<void> };

/** Starts nodes at once, and measures until each listens. */
export async function createNodes(count: number): Promise<BareNodes> {
  const binary = anvilBinary();
  const urls: string[] = [];
  const from = performance.now();
  const children = await Promise.all(
    Array.from({ length: count }, async () => {
      const child = spawn(binary, ["--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
      for await (const line of createInterface(child.stdout)) {
        const address = /^Listening on (\S+)/.exec(line)?.[1];
        if (address === undefined) continue;
        urls.push(`http://${address}`);
        break;
      }
      child.stdout.resume();
      return child;
    }),
  );
  return {
    urls,
    tookMs: performance.now() - from,
    async stop() {
      await Promise.all(
        children.map(async (child) => {
          const exited = once(child, "exit");
          child.kill("SIGTERM");
          await exited;
        }),
      );
    },
  };
}
