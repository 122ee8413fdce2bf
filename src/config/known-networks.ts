import { z } from "zod";
import { transferMethods } from "../methods/method-lists.ts";
import {
  type Asset,
  type BuiltInNetworkName,
  builtInNetworks,
  createNetworkRegistry,
  type Network,
  type NetworkName,
  type NetworkRegistry,
  networkNames,
  networks,
} from "../protocol/networks.ts";
import { parseJson } from "../util/json.ts";
import { formatPath, readBy } from "./data-file.ts";
import { type ByNetwork, InvalidValue, readAddress, readByNetwork, readWholeNumber } from "./values.ts";

export type NetworkDefaults = {
  /** How many blocks, including its own, a settlement needs before it is a success. */
  confirmations: number;
  /** The maximum price per gas, in wei. */
  maxFeePerGas: bigint;
  /** The maximum cost of settling for one organization per day (UTC), in wei. */
  dailyGasBudget: bigint;
};

/**
 * The gas of the most frequent payment: by EIP-3009, to a recipient that already has tokens. Used to estimate budgets
 * and caps. The amount an operator needs for any payment is higher; see `methods/on-chain`.
 */
export const plainPaymentGas = 108_000n;

const gwei = 1_000_000_000n;
const coin = 1_000_000_000n * gwei;

/**
 * Confirmations trade seconds of waiting against the risk that a reorganization undoes a success. Either way the
 * success is not final: the service watches a settlement's block until it is this deep, and no longer.
 *
 * - base and optimism have one sequencer, which does not replace its own blocks. Only the newest block can be lost, if
 *   a sequencer fails and another takes over before the block has spread. One block on top of it, two seconds later,
 *   shows that the successor knows it.
 * - Their test networks move nothing of value: the first block counts.
 * - polygon's producers do replace blocks, rarely more than a few in a row; milestones usually make blocks final after
 *   a few seconds. Eight blocks, about 16 seconds, are beyond both.
 *
 * The fee cap is the absolute maximum, not the usual price: a transaction pays the base fee and a small tip, and waits
 * while the base fee is above the cap. Costs below are for {@link plainPaymentGas}.
 *
 * - base, optimism: about 0.01 gwei on most days, 1 gwei in a rush. At 5 gwei a payment costs 0.0005 ETH.
 * - their test networks: coins cost nothing, but are handed out sparingly.
 * - polygon: 30 gwei on most days (no node accepts less than 25), several hundred in a rush. At 1,000 gwei a payment
 *   costs 0.1 POL.
 *
 * The gas budget limits how much one organization, or payers that waste gas through it, can cost the operator per day.
 * At the usual fees of each network it covers more than 90,000 payments a day; a busy shop needs more in a rush.
 */
export const networkDefaults: Readonly<Record<BuiltInNetworkName, NetworkDefaults>> = {
  base: { confirmations: 2, maxFeePerGas: 5n * gwei, dailyGasBudget: coin / 10n },
  "base-sepolia": { confirmations: 1, maxFeePerGas: 20n * gwei, dailyGasBudget: coin / 10n },
  optimism: { confirmations: 2, maxFeePerGas: 5n * gwei, dailyGasBudget: coin / 10n },
  "optimism-sepolia": { confirmations: 1, maxFeePerGas: 20n * gwei, dailyGasBudget: coin / 10n },
  polygon: { confirmations: 8, maxFeePerGas: 1_000n * gwei, dailyGasBudget: 500n * coin },
};

/** A network with its default settings. */
export type KnownNetwork = Network & NetworkDefaults;

/** All networks that a process knows: the built-in ones, and those of a network file. */
export type KnownNetworks = NetworkRegistry<KnownNetwork>;

/** The five built-in networks. */
export const builtIn: KnownNetworks = createNetworkRegistry(
  networkNames.map((name) => ({ ...networks[name], ...networkDefaults[name] })),
);

/** Adds networks to the built-in ones; {@link findClash} must have found no clash among them. */
export function extendBuiltIn(added: readonly KnownNetwork[]): KnownNetworks {
  return added.length === 0 ? builtIn : createNetworkRegistry([...builtIn.all, ...added]);
}

/** Returns why a network cannot be added to some others; undefined if it can. */
export function findClash(
  { name, caip2, chainId }: Network,
  others: readonly Network[],
): { field: string; problem: string } | undefined {
  const known = [...builtInNetworks.all, ...others];
  const isBuiltIn = (one: Network) => builtInNetworks.named(one.name) === one;
  const ofName = known.find((one) => one.name === name);
  if (ofName !== undefined) {
    return {
      field: "name",
      problem: `"${name}" is ${isBuiltIn(ofName) ? "a built-in network" : "there twice"}; give each network a name of its own`,
    };
  }
  const ofChain = known.find((one) => one.chainId === chainId);
  if (ofChain === undefined) return undefined;
  return {
    field: "caip2",
    problem: `${caip2} is the chain of ${ofChain.name}, which is ${isBuiltIn(ofChain) ? "built in" : "there already"}; leave this one out`,
  };
}

/** A token on a network, besides its USDC. */
export type NetworkAsset = Asset & { network: NetworkName };

const assetSchema = (known: NetworkRegistry) =>
  z
    .strictObject({
      network: z.enum(known.names),
      address: z.string().transform(readBy(readAddress)),
      name: z.string().min(1),
      version: z.string().min(1).default(""),
      decimals: z.int().min(0).max(77),
      symbol: z.string().min(1).max(64).optional(),
      transfers: z.array(z.enum(transferMethods)).min(1).optional(),
    })
    .refine(({ version, transfers }) => version !== "" || !transfers?.includes("eip3009"), {
      path: ["version"],
      error: "is needed for eip3009: that of the token's EIP-712 domain",
    });

/** Reads the JSON array of `ASSETS`. */
export function readAssets(text: string, known: NetworkRegistry = builtInNetworks): readonly NetworkAsset[] {
  const json = parseJson(text);
  if (json === undefined) throw new InvalidValue("is not JSON; in a .env file put it in single quotes");
  const parsed = z.array(assetSchema(known)).safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = formatPath(issue?.path ?? []);
  throw new InvalidValue(`${where === "" ? "" : `at ${where}: `}${issue?.message ?? "cannot be read"}`);
}

/**
 * Reads `LOCAL_ASSETS`: `base=0x…,NAME,VERSION,DECIMALS`, separated by semicolons. Fields omitted after the address
 * default to those of the network's USDC.
 */
export function readLocalAssets(text: string, known?: NetworkRegistry): ByNetwork<Asset> {
  return readByNetwork(text.split(";"), readLocalAsset, known);
}

function readLocalAsset(text: string, { usdc }: { usdc: Asset }): Asset {
  const [address = "", name = usdc.name, version = usdc.version, decimals, ...others] = text
    .split(",")
    .map((part) => part.trim());
  if (others.length > 0) throw new InvalidValue("has more than ADDRESS,NAME,VERSION,DECIMALS");
  if (name === "" || version === "") throw new InvalidValue("has an empty name or version");
  return {
    address: readAddress(address),
    name,
    version,
    decimals: decimals === undefined ? usdc.decimals : readWholeNumber(0, 36)(decimals),
  };
}
