import { z } from "zod";
import type { Deployment } from "../../observe/explain/deployment.ts";
import { decimalsSchema } from "../../observe/timeline/payment-view.ts";
import { localContracts } from "../../payer/local-chains.ts";
import { type Address, sameAddress } from "../../protocol/hex.ts";
import { builtInNetworks, type NetworkName, networkNames } from "../../protocol/networks.ts";
import { address, bytes32 } from "../../protocol/primitives.ts";
import type { Operation } from "../../protocol/problems.ts";
import { payToPolicies } from "../../protocol/signed-payment.ts";
import { KitError } from "../../util/errors.ts";
import { noAnswer, sendHttp } from "../../util/http-client.ts";
import { parseJson } from "../../util/json.ts";
import { self } from "../../util/self-command.ts";

/** Text without control characters, safe to print in a terminal. */
const line = z.string().regex(/^\P{Cc}*$/u);

const assetSchema = z.object({
  address,
  name: line,
  version: z.string(),
  decimals: decimalsSchema,
  symbol: line.optional(),
  transfers: z.array(z.string()).readonly().optional(),
});

/** The description of a running harness: printed by `up --json`, and served at `GET /harness`. */
export const harnessDescriptionSchema = z.object({
  facilitator: z.object({ url: z.url() }),
  organization: z.object({ id: z.string(), apiKey: z.string(), recipient: address }),
  /** Further requested organizations. */
  organizations: z
    .array(
      z.object({
        id: z.string(),
        name: z.string(),
        apiKey: z.string(),
        recipients: z.record(z.string(), address),
      }),
    )
    .optional(),
  /** The allowed `payTo` addresses; omitted if only the facilitator contract is allowed. */
  payToPolicy: z.enum(payToPolicies).optional(),
  /** The URL of the recording proxy and the shop behind it; only with `up --shop`. */
  shop: z.object({ url: z.string(), target: z.string() }).optional(),
  /** Only if the chains have their own clock. */
  seed: z.int().optional(),
  payers: z.record(z.string(), z.object({ address, privateKey: bytes32 })),
  networks: z.record(
    z.string(),
    z.object({
      chainId: z.int(),
      caip2: z.templateLiteral(["eip155:", z.int()]),
      rpcUrl: z.url(),
      facilitatorContract: address,
      /** The `payTo` of payments to the organization: the facilitator contract, or its recipient if that is allowed. */
      payTo: address,
      asset: assetSchema,
      /** Further accepted tokens, paid by Permit2; none on a fork. */
      tokens: z.record(z.string(), assetSchema).optional(),
      /** Only for networks that are not built in: `tier` selects the contract address, `nativeCoin` pays for gas. */
      tier: z.enum(["mainnet", "testnet"]).optional(),
      nativeCoin: z.string().optional(),
      /** Only on a fork: the block it continues from, the source of older state, and whether its token has a blacklist. */
      fork: z
        .object({ block: z.int(), from: z.enum(["remote", "recording"]), hasBlacklist: z.boolean() })
        .optional(),
    }),
  ),
});

/** Returns the base URL of a facilitator's pages: its URL without `/v1`. */
export function originOf({ facilitator }: { facilitator: { url: string } }): string {
  return facilitator.url.replace(/\/v1$/, "");
}

/** The networks of a running harness: the built-in ones in their usual order, then the added ones. */
export function networksOf({ networks }: HarnessDescription): readonly NetworkName[] {
  const running = Object.keys(networks);
  return [
    ...networkNames.filter((name) => running.includes(name)),
    ...running.filter((name) => builtInNetworks.named(name) === undefined),
  ];
}

/** The message for a network that the harness does not run. */
export function notRunning(network: NetworkName, running: object): string {
  return `${network} is not running; running: ${Object.keys(running).join(", ")}`;
}

export type HarnessDescription = z.infer<typeof harnessDescriptionSchema>;

/** The contracts, tokens and settings of a harness, against which explanations compare payments and offers. */
export function deploymentOf({ networks, payToPolicy }: HarnessDescription): Deployment {
  const running = Object.entries(networks);
  const contracts = running.flatMap(([name, { tier, facilitatorContract }]) => {
    const known = builtInNetworks.named(name)?.tier ?? tier;
    return known === undefined ? [] : [[known, facilitatorContract] as const];
  });
  return {
    contracts: { ...localContracts, ...Object.fromEntries(contracts) },
    payTo: payToPolicy ?? "contract",
    tokens: Object.fromEntries(
      running.map(([name, { asset, tokens = {} }]) => [name, [asset, ...Object.values(tokens)]]),
    ),
  };
}

/** The `payTo` for the organization with an API key: the facilitator contract, or its own recipient if that is allowed. */
export function payToOf(harness: HarnessDescription, network: NetworkName, apiKey: string): Address {
  const { payTo, facilitatorContract } = requireRunning(harness, network);
  if (sameAddress(payTo, facilitatorContract)) return payTo;
  return harness.organizations?.find((one) => one.apiKey === apiKey)?.recipients[network] ?? payTo;
}

export type RunningNetwork = NonNullable<HarnessDescription["networks"][string]>;

/** A facilitator and a caller's API key. */
export type Access = { facilitator: { url: string }; organization: { apiKey: string } };

/** The running chains of a harness. */
export type Running = { networks: Readonly<Record<string, RunningNetwork>> };

/** Returns a curl command that sends a payment to the running service. */
export function curlOf(
  { facilitator, organization }: Access,
  operation: Operation,
  body: Record<string, unknown>,
): string {
  return [
    `curl -s ${facilitator.url}/${operation} \\`,
    `  -H 'Authorization: ${organization.apiKey}' \\`,
    "  -H 'Content-Type: application/json' \\",
    `  -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`,
  ].join("\n");
}

/**
 * Fetches the description of the harness at a URL.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 * @returns undefined if something other than a harness answers
 * @throws KitError if nothing answers there
 */
export async function askHarness(origin: string): Promise<HarnessDescription | undefined> {
  const { text } = await sendHttp(`${origin}/harness`).catch((failure: unknown) => {
    throw noAnswer(origin, failure);
  });
  return harnessDescriptionSchema.safeParse(parseJson(text)).data;
}

/**
 * Returns the description of the harness at a URL: an `x402-kit up`, or one created by a test.
 *
 * @throws KitError with hints, if nothing answers there, or something other than a harness
 */
export async function findHarness(origin: string): Promise<HarnessDescription> {
  const address = "the address that `x402-kit up` printed, such as http://127.0.0.1:4402";
  let description: HarnessDescription | undefined;
  try {
    description = await askHarness(origin);
  } catch (error) {
    if (!(error instanceof KitError)) throw error;
    const { message, cause, code, hints } = error;
    const start = [`Start it in another terminal: ${self} up`];
    throw new KitError(message, {
      cause,
      code,
      hints: [...(hints.length > 0 ? hints : start), `If it listens elsewhere, give ${address}`],
    });
  }
  if (description !== undefined) return description;
  throw new KitError(`What answers at ${origin} is not an x402-kit harness`, {
    code: "unexpected-answer",
    hints: [`Give ${address}`, "An `x402-kit mock` has no chains to act on: this needs `x402-kit up`"],
  });
}

/**
 * Returns the network as the harness runs it.
 *
 * @throws KitError if the harness does not run it
 */
export function requireRunning({ networks }: Running, network: NetworkName): RunningNetwork {
  const running = networks[network];
  if (running !== undefined) return running;
  throw new KitError(notRunning(network, networks), { code: "not-found" });
}
