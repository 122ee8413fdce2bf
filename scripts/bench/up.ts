import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type HarnessDescription, harnessDescriptionSchema } from "../../src/harness/control/description.ts";
import { type PaymentSpec, signPayment } from "../../src/harness/control/pay.ts";
import type { X402Version } from "../../src/protocol/requests.ts";

/** A running `x402-kit up` in its own process. */
export type Up = Awaited<ReturnType<typeof startUp>>;

/** The command as it is installed; `npm run build` creates it. */
const bin = fileURLToPath(new URL("../../dist/cli/bin.js", import.meta.url));

/** Starts `up` on any free port; resolves when it has printed its description. */
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

/** The parts of a description that are needed to sign a payment. */
export type SigningTerms = Pick<HarnessDescription, "networks">;

/** How payments are paid, and where they go. */
export type PaidBy = Pick<
  PaymentSpec<"base">,
  "payer" | "asset" | "scheme" | "method" | "max" | "payTo" | "approval"
>;

/**
 * The bodies of payments of one unit on base, signed by the test payer `funded` by default, valid for an hour.
 *
 * @param way how they are paid, by default by EIP-3009; with scheme "upto" and a higher `max`, the bodies are only good
 * for settle
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
