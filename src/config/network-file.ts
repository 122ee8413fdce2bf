import { z } from "zod";
import { packageFile } from "../util/self-command.ts";
import { describeIssues, readBy, readDataFile } from "./data-file.ts";
import {
  extendBuiltIn,
  findClash,
  type KnownNetwork,
  type KnownNetworks,
  plainPaymentGas,
} from "./known-networks.ts";
import { InvalidValue, readAddress, readGwei } from "./values.ts";

/** The largest chain id that all clients can sign for: EIP-2294 leaves room below 2^53. */
const largestChainId = Number.MAX_SAFE_INTEGER / 2 - 36;

const text = (what: string) =>
  z.string(`must be ${what}`).min(1, `must be ${what}`).max(64, "must have at most 64 characters");

const ascii = (what: string) => text(what).regex(/^[\x20-\x7e]*$/, "must be ASCII");

const whole = (least: number, most: number) => {
  const message = `must be a whole number from ${least} to ${most}`;
  return z.int(message).min(least, message).max(most, message);
};

const address = z.string("must be an address").transform(readBy(readAddress));

const feeCap = z
  .union([z.string(), z.number()], 'must be gwei, such as "0.5"')
  .transform(readBy((given) => readGwei(String(given))));

const caip2 = /^eip155:([1-9]\d{0,15})$/;

/** A network as described in a network file. docs/guides/networks.md explains its fields. */
const networkSchema = z
  .strictObject(
    {
      name: z
        .string("must be a name")
        .regex(
          /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/,
          "must be lower-case letters, digits and single hyphens, such as my-chain",
        )
        .max(40, "must have at most 40 characters"),
      caip2: z
        .string("must be eip155: and the chain id")
        .regex(caip2, "must be eip155: and the chain id, such as eip155:43114"),
      chainId: whole(1, largestChainId).optional(),
      tier: z.enum(
        ["mainnet", "testnet"],
        "must be mainnet or testnet: it chooses the contract's address and CREATE2 salt",
      ),
      token: z.strictObject(
        {
          address,
          name: text("the token's EIP-712 name"),
          version: text("the token's EIP-712 version"),
          decimals: whole(0, 36),
          symbol: text("the token's symbol, such as USDC").optional(),
        },
        "must be the token's address, name, version and decimals",
      ),
      confirmations: whole(1, 1_000),
      blockTimeMs: whole(50, 600_000),
      maxFeeGwei: feeCap,
      nativeCoin: ascii("what gas is paid in, such as ETH").default("ETH"),
      explorer: z
        .string("must be a URL")
        .regex(/^https?:\/\/[^\s/]+(\/[^\s]*[^\s/])?$/, "must be a URL without a slash at its end")
        .optional(),
    },
    "must be a network",
  )
  .refine(({ chainId, caip2: name }) => chainId === undefined || name === `eip155:${chainId}`, {
    path: ["chainId"],
    error: "is not the one of caip2",
  });

export type NetworkData = z.input<typeof networkSchema>;

/**
 * Reads one network, or a list of them, from data.
 *
 * @throws {InvalidValue} with all problems, each with its field
 */
export function readNetworkData(data: unknown): KnownNetworks {
  const isList = Array.isArray(data);
  if (isList && data.length === 0) throw new InvalidValue("is an empty list: it names no network");
  const { data: read, error } = z.array(networkSchema).safeParse(isList ? data : [data]);
  if (error !== undefined) throw new InvalidValue(describeIssues(data, error));
  const added: KnownNetwork[] = [];
  for (const [index, { token, maxFeeGwei, explorer, ...rest }] of read.entries()) {
    const network: KnownNetwork = {
      ...rest,
      caip2: `eip155:${Number(rest.caip2.slice("eip155:".length))}`,
      chainId: Number(rest.caip2.slice("eip155:".length)),
      usdc: token,
      maxFeePerGas: maxFeeGwei,
      // The coin's value is unknown, so the budget is a number of payments at the highest fee.
      dailyGasBudget: 1_000n * plainPaymentGas * maxFeeGwei,
      ...(explorer !== undefined && { explorer }),
    };
    const clash = findClash(network, added);
    if (clash !== undefined)
      throw new InvalidValue(`${isList ? `[${index}].` : ""}${clash.field}: ${clash.problem}`);
    added.push(network);
  }
  return extendBuiltIn(added);
}

/** The chains that the public x402 packages pay on by default; shipped with this package. */
const x402Defaults = packageFile("networks/x402-defaults.json");

/**
 * Reads a network file: a JSON file with one network or a list of them.
 *
 * @param given its path; `x402` stands for this package's file with the default chains of the public x402 packages
 * @throws {InvalidValue} with all problems, each with its field
 */
export function readNetworkFile(given: string): KnownNetworks {
  return readDataFile(given === "x402" ? x402Defaults : given, readNetworkData);
}
