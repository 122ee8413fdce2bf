import { z } from "zod";
import { builtInNetworks, type NetworkName, networkNames } from "../../protocol/networks.ts";
import { address, bytes32 } from "../../protocol/primitives.ts";
import type { Operation } from "../../protocol/problems.ts";

/** What a running harness is made of: printed by `up --json`, and served at `GET /harness`. */
export const harnessDescriptionSchema = z.object({
  facilitator: z.object({ url: z.string() }),
  organization: z.object({ id: z.string(), apiKey: z.string(), recipient: address }),
  /** Those besides it that were asked for. */
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
  /** Only where the chains have a clock of their own. */
  seed: z.int().optional(),
  payers: z.record(z.string(), z.object({ address, privateKey: bytes32 })),
  networks: z.record(
    z.string(),
    z.object({
      chainId: z.int(),
      caip2: z.templateLiteral(["eip155:", z.int()]),
      rpcUrl: z.string(),
      facilitatorContract: address,
      asset: z.object({
        address,
        name: z.string(),
        version: z.string(),
        decimals: z.int(),
        symbol: z.string().optional(),
      }),
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

/** The networks of a running harness: the built-in ones in their order, and then what was added. */
export function networksOf({ networks }: HarnessDescription): readonly NetworkName[] {
  const running = Object.keys(networks);
  return [
    ...networkNames.filter((name) => running.includes(name)),
    ...running.filter((name) => builtInNetworks.named(name) === undefined),
  ];
}

/** What is said of a network that a harness runs without. */
export function notRunning(network: NetworkName, running: object): string {
  return `${network} is not running; running: ${Object.keys(running).join(", ")}`;
}

export type HarnessDescription = z.infer<typeof harnessDescriptionSchema>;

/** One of the networks of a running harness. */
export type RunningNetwork = NonNullable<HarnessDescription["networks"][string]>;

/** A command that sends the body of a payment to the running service, to paste into a terminal. */
export function curlOf(
  { facilitator, organization }: Pick<HarnessDescription, "facilitator" | "organization">,
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
