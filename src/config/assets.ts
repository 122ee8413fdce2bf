import { z } from "zod";
import { type Asset, builtInNetworks, type NetworkName, type NetworkRegistry } from "../protocol/networks.ts";
import { InvalidValue, readAddress } from "./values.ts";

/** A token of a network, besides its USDC. */
export type NetworkAsset = Asset & { network: NetworkName };

const assetSchema = (known: NetworkRegistry) =>
  z.strictObject({
    network: z.enum(known.names),
    address: z.string().transform((text, context) => {
      try {
        return readAddress(text);
      } catch (error) {
        if (!(error instanceof InvalidValue)) throw error;
        context.addIssue({ code: "custom", message: error.message });
        return z.NEVER;
      }
    }),
    name: z.string().min(1),
    version: z.string().min(1),
    decimals: z.int().min(0).max(77),
  });

/** Reads the JSON array of `ASSETS`. */
export function readAssets(text: string, known: NetworkRegistry = builtInNetworks): readonly NetworkAsset[] {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new InvalidValue("is not JSON; in a .env file put it in single quotes");
  }
  const parsed = z.array(assetSchema(known)).safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
  throw new InvalidValue(`${where ? `at ${where}: ` : ""}${issue?.message ?? "cannot be read"}`);
}
