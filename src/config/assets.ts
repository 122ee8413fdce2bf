import { z } from "zod";
import { type Asset, builtInNetworks, type NetworkName, type NetworkRegistry } from "../protocol/networks.ts";
import { parseJson } from "../util/json.ts";
import { formatPath, readBy } from "./data-file.ts";
import { type ByNetwork, InvalidValue, readAddress, readByNetwork, readWholeNumber } from "./values.ts";

/** A token of a network, besides its USDC. */
export type NetworkAsset = Asset & { network: NetworkName };

const assetSchema = (known: NetworkRegistry) =>
  z.strictObject({
    network: z.enum(known.names),
    address: z.string().transform(readBy(readAddress)),
    name: z.string().min(1),
    version: z.string().min(1),
    decimals: z.int().min(0).max(77),
    symbol: z.string().min(1).max(64).optional(),
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
 * Reads `LOCAL_ASSETS`: `base=0x…,NAME,VERSION,DECIMALS`, several with semicolons. Parts left out after the address
 * are those of the network's USDC.
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
