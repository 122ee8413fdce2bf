import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

/** An anvil process that belongs to one test. */
export type Anvil = { url: string; stop(): Promise<void> };

/** Starts anvil on a free port. */
export async function startAnvil(chainId: number, options: readonly string[] = []): Promise<Anvil> {
  const main = createRequire(import.meta.url).resolve("@foundry-rs/anvil/package.json");
  const binary = createRequire(main).resolve(
    `@foundry-rs/anvil-${process.platform}-${process.arch.replace("x64", "amd64")}/bin/anvil`,
  );
  const child = spawn(
    binary,
    ["--port", "0", "--chain-id", `${chainId}`, "--prune-history", "--gas-limit", "100000000", ...options],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /^Listening on .*:(\d+)$/.exec(line)?.[1];
    if (port !== undefined) {
      child.stdout.resume();
      return {
        url: `http://127.0.0.1:${port}`,
        async stop() {
          const ended = once(child, "exit");
          child.kill("SIGTERM");
          await ended;
        },
      };
    }
  }
  throw new Error("anvil ended before it was ready");
}
