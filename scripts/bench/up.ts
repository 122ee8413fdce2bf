import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type HarnessDescription, harnessDescriptionSchema } from "../../src/harness/control/description.ts";
import { type PaymentSpec, signPayment } from "../../src/harness/control/pay.ts";
import type { X402Version } from "../../src/protocol/requests.ts";

/** A running `x402-kit up` in a process of its own. */
export type Up = Awaited<ReturnType<typeof startUp>>;

/** The command as it is installed: `npm run build` makes it. */
const bin = fileURLToPath(new URL("../../dist/cli/bin.js", import.meta.url));

/** Starts `up` on any free port, and resolves when it has printed what it is made of. */
export async function startUp(options: readonly string[]) {
  const args = [bin, "up", "--port", "0", ...options];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await once(createInterface(child.stdout), "line");
  return {
    description: harnessDescriptionSchema.parse(JSON.parse(line)),
    pid: child.pid ?? 0,
    async stop() {
      child.kill("SIGINT");
      if (child.exitCode === null) await once(child, "exit");
    },
  };
}

/** The parts of a description that signing a payment needs. */
export type SigningTerms = Pick<HarnessDescription, "networks">;

/** How payments are paid, and where they go. */
export type PaidBy = Pick<
  PaymentSpec<"base">,
  "payer" | "asset" | "scheme" | "method" | "max" | "payTo" | "approval"
>;

/**
 * Bodies of payments of one unit on base, each signed by the test payer `funded` unless said otherwise, for an hour.
 *
 * @param way how they are paid, where that is not by EIP-3009; of scheme “upto” the bodies of settles, where `max` is more
 */
export function signBodies(
  description: SigningTerms,
  count: number,
  x402Version: X402Version,
  way: PaidBy = {},
): Promise<string[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const order = { network: "base", amount: 1n, validForSeconds: 3_600, x402Version, ...way } as const;
      return JSON.stringify((await signPayment(description, order)).settleRequest);
    }),
  );
}
