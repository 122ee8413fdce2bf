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

/** One line for a terminal. */
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
  /** The other requested ones. */
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
  /** Where payments may go; only where that is not the facilitator contract alone. */
  payToPolicy: z.enum(payToPolicies).optional(),
  /** The URL of the recording proxy and the shop behind it; only with `up --shop`. */
  shop: z.object({ url: z.string(), target: z.string() }).optional(),
  /** Only where the chains have a clock of their own. */
  seed: z.int().optional(),
  payers: z.record(z.string(), z.object({ address, privateKey: bytes32 })),
  networks: z.record(
    z.string(),
    z.object({
      chainId: z.int(),
      caip2: z.templateLiteral(["eip155:", z.int()]),
      rpcUrl: z.url(),
      facilitatorContract: address,
      /** `payTo` of payments to the organization: the facilitator contract, or its recipient where that is allowed. */
      payTo: address,
      asset: assetSchema,
      /** The accepted assets besides, by Permit2; none on a fork. */
      tokens: z.record(z.string(), assetSchema).optional(),
      /** Only of a network that is not built in: whose contract address it has, and what gas is paid in. */
      tier: z.enum(["mainnet", "testnet"]).optional(),
      nativeCoin: z.string().optional(),
      /** Only of a fork: the block that it goes on from, where the rest is read, and whether its token can blacklist. */
      fork: z
        .object({ block: z.int(), from: z.enum(["remote", "recording"]), hasBlacklist: z.boolean() })
        .optional(),
    }),
  ),
});

/** Where the pages of a facilitator are, by its URL, which ends in `/v1`. */
export function originOf({ facilitator }: { facilitator: { url: string } }): string {
  return facilitator.url.replace(/\/v1$/, "");
}

/** The networks of a running harness: the built-in ones in their order, and then what was added. */
export function networksOf({ networks }: HarnessDescription): readonly NetworkName[] {
  const running = Object.keys(networks);
  return [
    ...networkNames.filter((name) => running.includes(name)),
    ...running.filter((name) => builtInNetworks.named(name) === undefined),
  ];
}

/** The text about a network that a harness runs without. */
export function notRunning(network: NetworkName, running: object): string {
  return `${network} is not running; running: ${Object.keys(running).join(", ")}`;
}

export type HarnessDescription = z.infer<typeof harnessDescriptionSchema>;

/** What explanations compare payments and offers with: the contracts, tokens and settings of a harness. */
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

/** Where payments go to the organization with an API key: the facilitator contract, or its own recipient where that is allowed. */
export function payToOf(harness: HarnessDescription, network: NetworkName, apiKey: string): Address {
  const { payTo, facilitatorContract } = requireRunning(harness, network);
  if (sameAddress(payTo, facilitatorContract)) return payTo;
  return harness.organizations?.find((one) => one.apiKey === apiKey)?.recipients[network] ?? payTo;
}

export type RunningNetwork = NonNullable<HarnessDescription["networks"][string]>;

/** A facilitator and the key of a caller. */
export type Access = { facilitator: { url: string }; organization: { apiKey: string } };

/** The chains of a harness. */
export type Running = { networks: Readonly<Record<string, RunningNetwork>> };

/** A command that sends the body of a payment to the running service, to paste into a terminal. */
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
 * Asks what runs at a URL what it is made of.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 * @returns undefined when what answers there is no harness
 * @throws KitError when nothing answers there
 */
export async function askHarness(origin: string): Promise<HarnessDescription | undefined> {
  const { text } = await sendHttp(`${origin}/harness`).catch((failure: unknown) => {
    throw noAnswer(origin, failure);
  });
  return harnessDescriptionSchema.safeParse(parseJson(text)).data;
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
 * The network as the harness runs it.
 *
 * @throws KitError when the harness runs without it
 */
export function requireRunning({ networks }: Running, network: NetworkName): RunningNetwork {
  const running = networks[network];
  if (running !== undefined) return running;
  throw new KitError(notRunning(network, networks), { code: "not-found" });
}
