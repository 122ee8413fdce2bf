import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { anvilBinary } from "../../src/harness/nodes/anvil-binary.ts";

/** Starts nodes with nothing on them, at once, and measures until each listens. */
export async function createNodes(count: number): Promise<{ tookMs: number; stop(): Promise<void> }> {
  const binary = anvilBinary();
  const from = performance.now();
  const children = await Promise.all(
    Array.from({ length: count }, async () => {
      const child = spawn(binary, ["--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
      for await (const line of createInterface(child.stdout)) if (line.startsWith("Listening on")) break;
      child.stdout.resume();
      return child;
    }),
  );
  return {
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
