import type { Supported } from "../protocol/answers.ts";
import type { ServedNetwork } from "../protocol/checks.ts";
import { formatNetwork, type Network } from "../protocol/networks.ts";
import type { X402Version } from "../protocol/requests.ts";
import type { TakenMethod } from "./method.ts";

/** The payment kinds of a network for `GET /supported`. Kinds with fewer fields in `extra` come first. */
export function kindsOf(
  methods: readonly TakenMethod[],
  network: ServedNetwork & Pick<Network, "caip2">,
  x402Version: X402Version,
): Supported["kinds"] {
  const { payTo = "contract", strictness = "spec", reasons = "spec" } = network;
  return methods
    .filter(({ versions }) => versions.includes(x402Version))
    .flatMap(({ scheme, extra }) => {
      const own = extra(network);
      return own === undefined ? [] : { scheme, own };
    })
    .sort((one, other) => Object.keys(one.own).length - Object.keys(other.own).length)
    .map(({ scheme, own }) => {
      const terms = {
        ...(payTo !== "contract" && { payTo }),
        ...(strictness !== "spec" && { strictness }),
        ...(reasons !== "spec" && { reasons }),
      };
      const extra = { ...terms, ...own };
      const kind = { x402Version, scheme, network: formatNetwork(network, x402Version) };
      return Object.keys(extra).length === 0 ? kind : { ...kind, extra };
    });
}
