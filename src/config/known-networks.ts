import {
  builtInNetworks,
  createNetworkRegistry,
  type Network,
  type NetworkRegistry,
  networkNames,
  networks,
} from "../protocol/networks.ts";
import { type NetworkDefaults, networkDefaults } from "./network-defaults.ts";

/** A network with its default settings. */
export type KnownNetwork = Network & NetworkDefaults;

/** All networks that a process knows: the built-in ones, and those of a network file. */
export type KnownNetworks = NetworkRegistry<KnownNetwork>;

/** The five that are always known. */
export const builtIn: KnownNetworks = createNetworkRegistry(
  networkNames.map((name) => ({ ...networks[name], ...networkDefaults[name] })),
);

/** The built-in networks and added ones, in which {@link findClash} has found no clash. */
export function extendBuiltIn(added: readonly KnownNetwork[]): KnownNetworks {
  return added.length === 0 ? builtIn : createNetworkRegistry([...builtIn.all, ...added]);
}

/** Why a network cannot be added to some others; undefined where it can. */
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
