import { randomBytes, randomUUID } from "node:crypto";
import { privateKeyToAddress } from "viem/accounts";
import { z } from "zod";
import { KitError } from "../errors.ts";
import {
  defaultContracts,
  type FixtureNetwork,
  type ScenarioEnvironment,
} from "../fixtures/engine/environment.ts";
import type { HarnessDescription } from "../harness/control/description.ts";
import { askHarness } from "../harness/control/find-harness.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import { findNetwork, type NetworkName } from "../protocol/networks.ts";
import type { X402Version } from "../protocol/requests.ts";
import { testKeys } from "../published/test-keys.ts";
import { readHeadTime } from "../rpc/head-time.ts";
import { createLocalRpc } from "../rpc/local-rpc.ts";
import { compareContract } from "./compare-contract.ts";
import { compareExactly } from "./compare-exactly.ts";
import type { Comparison } from "./comparison.ts";
import { hideSecrets } from "./hide-secrets.ts";
import { sendRequest } from "./send-request.ts";

export type FacilitatorOptions = {
  /** Without `/v1`. */
  baseUrl: string;
  /** A published one means that the facilitator is of this kit, and has the other published ones and the test payers. */
  apiKey: string;
  /** Where to pay; the first network that the facilitator lists by default. */
  network?: NetworkName | undefined;
  /** Where payments must go: `payTo`. */
  contract?: Address | undefined;
  /** Of an account that has money on the network; it pays for what settles. */
  payerKey?: Hex | undefined;
};

/** A facilitator, and what scenarios must know of it. */
export type FoundFacilitator = {
  baseUrl: string;
  environment: ScenarioEnvironment;
  /** Whether it is one of this kit, with the published keys and the test payers. */
  isKit: boolean;
  /** Whether there is an account that can pay. */
  hasFunds: boolean;
  /** Whether the token knows a blacklist: on a fork it may not. */
  hasBlacklist: boolean;
  /** The versions of the protocol that it lists for the network. */
  versions: ReadonlySet<X402Version>;
  /** Shows neither the API key nor the payer's. */
  compare: Comparison;
};

/** What others have in it besides does not matter. */
const supportedSchema = z.object({
  kinds: z.array(z.object({ x402Version: z.number(), scheme: z.string(), network: z.string() })),
});

/** It answers from memory. */
const answersWithinMs = 10_000;

/**
 * Asks a facilitator what it supports.
 *
 * @throws {KitError} when nothing answers, it is no facilitator, or payments cannot be made there
 */
export async function findFacilitator(options: FacilitatorOptions): Promise<FoundFacilitator> {
  const { baseUrl, apiKey, payerKey } = options;
  const kinds = await readKinds(baseUrl);
  const isKit = apiKey === testKeys.local.apiKey;
  const harness = isKit ? await askHarness(baseUrl) : undefined;

  const names = [...new Set(kinds.map(({ name }) => name))];
  const name = options.network ?? names[0];
  if (name === undefined || !names.includes(name)) {
    throw new KitError(
      `The facilitator at ${baseUrl} lists no payments by scheme "exact" on ${name ?? "a known network"}`,
      {
        hints: [
          `GET ${baseUrl}/v1/supported lists ${names.length === 0 ? "none that is known" : names.join(", ")}`,
        ],
      },
    );
  }
  const networks = names.map((one) => describe(one, options, { isKit, harness }));
  const [first, ...others] = networks;
  const network = networks.find((one) => one.name === name);
  if (first === undefined || network === undefined) throw new Error(`${name} is missing`);

  const rpcUrl = harness?.networks[name]?.rpcUrl;
  return {
    baseUrl,
    isKit,
    hasFunds: isKit || payerKey !== undefined,
    hasBlacklist: harness?.networks[name]?.fork?.hasBlacklist ?? true,
    versions: new Set(kinds.filter((kind) => kind.name === name).map(({ x402Version }) => x402Version)),
    compare: hideSecrets(
      isKit ? compareExactly : compareContract,
      [apiKey, payerKey].filter((secret) => secret !== undefined),
    ),
    environment: {
      networks: [first, ...others],
      network,
      keys: isKit
        ? testKeys
        : { ...testKeys, local: { apiKey, organizationId: testKeys.local.organizationId } },
      ...(!isKit && { payers: { funded: accountOf(payerKey), empty: accountOf(undefined) } }),
      now:
        rpcUrl === undefined
          ? () => BigInt(Math.floor(Date.now() / 1000))
          : () => readHeadTime(createLocalRpc(rpcUrl), name),
      run: randomUUID(),
    },
  };
}

async function readKinds(baseUrl: string): Promise<{ name: NetworkName; x402Version: X402Version }[]> {
  const answer = await ask(baseUrl, "/v1/supported");
  const read = supportedSchema.safeParse(answer.kind === "json" ? answer.body : undefined);
  if (answer.kind !== "json" || answer.status !== 200 || !read.success) {
    const came =
      answer.kind === "reset"
        ? "no answer"
        : `${answer.kind === "json" ? "JSON" : "something else than JSON"} with status ${answer.status}`;
    throw new KitError(`What answers at ${baseUrl} is not an x402 facilitator`, {
      hints: [
        `GET ${baseUrl}/v1/supported gave ${came}; a facilitator lists its kinds of payment there.`,
        "Give the address that /v1/verify and /v1/settle are behind.",
      ],
    });
  }
  return read.data.kinds.flatMap(({ scheme, x402Version, network }) => {
    if (scheme !== "exact" || (x402Version !== 1 && x402Version !== 2)) return [];
    const known = findNetwork(network, x402Version);
    return known === undefined ? [] : [{ name: known.name, x402Version }];
  });
}

async function ask(baseUrl: string, path: string) {
  try {
    return await sendRequest(baseUrl, { method: "GET", path, headers: {} }, answersWithinMs);
  } catch (error) {
    throw new KitError(`Nothing answers at ${baseUrl}`, {
      cause: error instanceof KitError ? error.cause : error,
      hints: ["Give the address of a facilitator that runs: --url URL"],
    });
  }
}

function describe(
  name: NetworkName,
  { contract }: FacilitatorOptions,
  { isKit, harness }: { isKit: boolean; harness: HarnessDescription | undefined },
): FixtureNetwork {
  const network = findNetwork(name, 1);
  if (network === undefined) throw new Error(`${name} is no network`);
  const running = harness?.networks[name];
  const known = running?.facilitatorContract ?? (isKit ? defaultContracts[network.tier] : undefined);
  const facilitatorContract = contract ?? known;
  if (facilitatorContract === undefined) {
    throw new KitError("Where payments must go is not known", {
      hints: [
        "Give the address that this facilitator wants as payTo: --contract ADDRESS",
        "Of a facilitator of this kit, it is the facilitator contract.",
      ],
    });
  }
  return { ...network, facilitatorContract, assets: [running?.asset ?? network.usdc] };
}

/** An account by its key, or a new one at random. */
function accountOf(privateKey: Hex = `0x${randomBytes(32).toString("hex")}`) {
  try {
    return { address: privateKeyToAddress(privateKey), privateKey };
  } catch {
    // Without its cause, which may quote the key.
    throw new KitError(
      "PAYER_PRIVATE_KEY is no private key: it is not below the order of secp256k1, or zero",
    );
  }
}
