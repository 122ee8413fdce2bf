import { type Asset, type NetworkName, networks } from "../protocol/networks.ts";
import { InvalidValue, ordinal, readAddress, readNetwork, readWholeNumber } from "./values.ts";

/** A value for some networks. */
export type ByNetwork<T> = Readonly<Partial<Record<NetworkName, T>>>;

/**
 * Reads `LOCAL_ASSETS`: `base=0x…,NAME,VERSION,DECIMALS`, several with semicolons. What is left out after the address is as
 * the network's USDC has it.
 */
export function readLocalAssets(text: string): ByNetwork<Asset> {
  return readByNetwork(text.split(";"), (value, network) => {
    const { usdc } = networks[network];
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
  read: (value: string, network: NetworkName) => T,
): ByNetwork<T> {
  const found: Partial<Record<NetworkName, T>> = {};
  for (const [index, part] of parts.entries()) {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.+?)\s*$/s.exec(part) ?? [];
    if (name === undefined || value === undefined) {
      throw new InvalidValue(`its ${ordinal(index)} part is not NETWORK=VALUE`);
    }
    const network = readNetwork(name);
    if (found[network] !== undefined) throw new InvalidValue(`names ${network} twice`);
    found[network] = read(value, network);
  }
  return found;
}
