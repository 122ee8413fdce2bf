import type { Method } from "./method.ts";
import { methods, schemes } from "./methods.ts";

/*
 * What people call payment methods in options and reports. Apart from the methods, since pages do without.
 */

/** From the default method on. */
const fromDefault = methods.toReversed();

/** The scheme that is meant where a maximum is named, and no scheme. */
export const maximumScheme = fromDefault.find(({ takesLess }) => takesLess)?.scheme;

/** The name of a payment method in options and reports: its scheme, or for the default scheme how tokens move. */
export function shortNameOf({ scheme, transfer }: Pick<Method, "scheme" | "transfer">): string {
  return scheme === schemes[0] ? transfer : scheme;
}

/** The short names of all, the default method first. */
export const shortNames: readonly string[] = [...new Set(fromDefault.map(shortNameOf))];

/** The payment method with a short name; the default one of its scheme where several have it. */
export function methodNamed(name: string): Method {
  const method = fromDefault.find((one) => shortNameOf(one) === name);
  if (method === undefined) throw new Error(`unknown payment method: ${name}`);
  return method;
}
