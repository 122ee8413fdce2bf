import { type Asset, builtInNetworks, type Network, type NetworkRegistry } from "../protocol/networks.ts";
import { InvalidValue, ordinal, readAddress, readNetwork, readWholeNumber } from "./values.ts";

/** A value for some networks. */
export type ByNetwork<T> = Readonly<Record<string, T>>;

/**
 * Reads `LOCAL_ASSETS`: `base=0x…,NAME,VERSION,DECIMALS`, several with semicolons. What is left out after the address is as
 * the network's USDC has it.
 */
export function readLocalAssets(text: string, known: NetworkRegistry = builtInNetworks): ByNetwork<Asset> {
  return readByNetwork(text.split(";"), known, (value, { usdc }) => {
    const [address = "", name = usdc.name, version = usdc.version, decimals, ...others] = value
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
  });
}

/** Reads parts such as `base=VALUE`, each network at most once. */
export function readByNetwork<T>(
  parts: readonly string[],
  known: NetworkRegistry,
  read: (value: string, network: Network) => T,
): ByNetwork<T> {
  const found: Record<string, T> = {};
  for (const [index, part] of parts.entries()) {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.+?)\s*$/s.exec(part) ?? [];
    if (name === undefined || value === undefined) {
      throw new InvalidValue(`its ${ordinal(index)} part is not NETWORK=VALUE`);
    }
    const network = known.named(readNetwork(name, known));
    if (network === undefined) continue;
    if (found[network.name] !== undefined) throw new InvalidValue(`names ${network.name} twice`);
    found[network.name] = read(value, network);
  }
  return found;
}
