import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { privateKeyToAddress } from "viem/accounts";
import type { Address } from "../../../src/protocol/hex.ts";

/** The key that it settles with: anvil's fourth account, which is published and not part of the harness. */
const settler = "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6";

/** A running facilitator of the public packages, which accepts any `payTo` and needs no API key. */
export type ReferenceFacilitator = {
  origin: string;
  pid: number;
  /** The account that it settles with. */
  address: Address;
  close(): Promise<void>;
};

/**
 * Starts the public reference facilitator on a local chain. With `approvals`, it also sends approvals that payers have
 * signed as transactions.
 */
export async function startReferenceFacilitator(
  chain: {
    rpcUrl: string;
    chainId: number;
    setBalance(address: Address, wei: bigint): Promise<void>;
  },
  { approvals = false } = {},
): Promise<ReferenceFacilitator> {
  const address = privateKeyToAddress(settler);
  await chain.setBalance(address, 100n * 10n ** 18n);
  const program = fileURLToPath(new URL("reference-program.ts", import.meta.url));
  const child = spawn(
    process.execPath,
    [program, chain.rpcUrl, String(chain.chainId), settler, ...(approvals ? ["approvals"] : [])],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  for await (const line of createInterface(child.stdout)) {
    return {
      origin: line.replace(/\/v1$/, ""),
      pid: child.pid ?? 0,
      address,
      async close() {
        const exited = once(child, "exit");
        child.kill("SIGKILL");
        await exited;
      },
    };
  }
  throw new Error("the reference facilitator did not start");
}
