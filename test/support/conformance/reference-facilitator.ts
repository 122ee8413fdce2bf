import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { privateKeyToAddress } from "viem/accounts";
import type { HarnessChain } from "../../../src/harness/stage/chain.ts";

/** The account that it settles with. */
const settler = "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6";

/** A running facilitator of the public packages, which takes any `payTo`, and no API key. */
export type ReferenceFacilitator = { origin: string; close(): void };

/** Starts the public reference facilitator on a local chain. */
export async function startReferenceFacilitator({
  rpcUrl,
  network,
  node,
}: HarnessChain): Promise<ReferenceFacilitator> {
  await node.request("anvil_setBalance", privateKeyToAddress(settler), "0x56bc75e2d63100000");
  const script = fileURLToPath(new URL("../../../scripts/bench/reference-facilitator.ts", import.meta.url));
  const child = spawn(process.execPath, [script, rpcUrl, String(network.chainId), settler], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface(child.stdout)) {
    return { origin: line.replace(/\/v1$/, ""), close: () => void child.kill("SIGKILL") };
  }
  throw new Error("the reference facilitator did not start");
}
