import type { NetworkName } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { requestJson } from "../../util/http-client.ts";
import { self } from "../../util/self-command.ts";
import {
  type HarnessDescription,
  harnessDescriptionSchema,
  notRunning,
  type RunningNetwork,
} from "./description.ts";

/** It answers from memory: what takes longer, on a busy machine too, is something else. */
const answersWithinMs = 20_000;

/**
 * Asks what runs at a URL what it is made of.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 * @returns undefined when what answers there is no harness
 * @throws KitError when nothing answers there
 */
export async function askHarness(origin: string): Promise<HarnessDescription | undefined> {
  try {
    const { body } = await requestJson(`${origin}/harness`, { timeoutMs: answersWithinMs });
    return harnessDescriptionSchema.safeParse(body).data;
  } catch (error) {
    const cause = error instanceof KitError ? error.cause : error;
    // It answers, and not with JSON.
    if (cause instanceof SyntaxError) return undefined;
    throw new KitError(`Nothing answers at ${origin}`, { cause });
  }
}

/**
 * The harness that runs at a URL: an `x402-kit up`, or one that a test has created.
 *
 * @throws KitError when nothing answers there, or something else does, with what to do about it
 */
export async function findHarness(origin: string): Promise<HarnessDescription> {
  const address = "the address that `x402-kit up` printed, such as http://127.0.0.1:4402";
  let description: HarnessDescription | undefined;
  try {
    description = await askHarness(origin);
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    const { message, cause } = error;
    throw new KitError(message, {
      cause,
      hints: [`Start it in another terminal: ${self} up`, `If it listens elsewhere, give ${address}`],
    });
  }
  if (description !== undefined) return description;
  throw new KitError(`What answers at ${origin} is not an x402-kit harness`, {
    hints: [`Give ${address}`, "An `x402-kit mock` has no chains to act on: this needs `x402-kit up`"],
  });
}

/**
 * The network as the harness runs it.
 *
 * @throws KitError when the harness runs without it
 */
export function requireRunning(
  harness: Pick<HarnessDescription, "networks">,
  network: NetworkName,
): RunningNetwork {
  const running = harness.networks[network];
  if (running !== undefined) return running;
  throw new KitError(notRunning(network, harness.networks));
}
