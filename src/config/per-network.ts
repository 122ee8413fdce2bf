import { type NetworkName, networkNames } from "../protocol/networks.ts";
import { InvalidValue, quote, readOneOf } from "./values.ts";

/** One value for each of some networks. */
export type PerNetwork<T> = Readonly<Partial<Record<NetworkName, T>>>;

/** Reads `base=2,polygon=8`. Networks may be named that are not in use. */
export function readPerNetwork<T>(read: (text: string) => T): (text: string) => PerNetwork<T> {
  return (text) => {
    const values: Partial<Record<NetworkName, T>> = {};
    for (const part of text.split(",")) {
      const [name = "", value = "", ...more] = part.split("=").map((half) => half.trim());
      if (value === "" || more.length > 0) {
        throw new InvalidValue(`${quote(part.trim())} is not of the form NETWORK=VALUE`);
      }
      const network = readOneOf(networkNames)(name);
      if (values[network] !== undefined) throw new InvalidValue(`names ${network} twice`);
      try {
        values[network] = read(value);
      } catch (error) {
        throw error instanceof InvalidValue ? new InvalidValue(`${network}: ${error.message}`) : error;
      }
    }
    return values;
  };
}
