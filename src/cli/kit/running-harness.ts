import { readFacilitatorUrl } from "../../config/values.ts";
import { KitError } from "../../errors.ts";
import { type HarnessDescription, harnessDescriptionSchema } from "../../harness/control/description.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { Option } from "./options.ts";
import { self } from "./self.ts";

/** Where `up` listens unless it is told otherwise. */
export const defaultUrl = "http://127.0.0.1:4402";

/** Where the `up` runs that a command acts on. */
export const urlOption: Option<string> = {
  describe: `where \`x402-kit up\` listens (default ${defaultUrl})`,
  placeholder: "URL",
  env: "X402_KIT_URL",
  example: defaultUrl,
  read: readFacilitatorUrl,
  fallback: defaultUrl,
};

/** It answers from memory: whatever takes longer is something else. */
const answersWithinMs = 5_000;

/**
 * Asks a running `up` what it is made of.
 *
 * @throws KitError when none answers there.
 */
export async function findHarness(url: string): Promise<HarnessDescription> {
  const description = harnessDescriptionSchema.safeParse(await ask(url));
  if (!description.success) {
    throw new KitError(`What answers at ${url} is not x402-kit up`, {
      hints: ["Give the address that `x402-kit up` printed: --url http://127.0.0.1:PORT"],
    });
  }
  return description.data;
}

/** @throws KitError when the `up` runs without the network. */
export function requireRunning(harness: HarnessDescription, network: NetworkName): void {
  if (harness.networks[network] !== undefined) return;
  throw new KitError(`${network} is not running there`, {
    hints: [`Running: ${Object.keys(harness.networks).join(", ")}`],
  });
}

/** What is answered there, undefined when it is not JSON. */
async function ask(url: string): Promise<unknown> {
  try {
    const response = await fetch(`${url}/harness`, { signal: AbortSignal.timeout(answersWithinMs) });
    const text = await response.text();
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  } catch (error) {
    // fetch says "fetch failed" and keeps the reason for itself.
    const cause = error instanceof TypeError && error.cause !== undefined ? error.cause : error;
    throw new KitError(`Nothing answers at ${url}`, {
      cause,
      hints: [
        `Start it in another terminal: ${self} up`,
        "If it listens elsewhere: --url http://127.0.0.1:PORT",
      ],
    });
  }
}
