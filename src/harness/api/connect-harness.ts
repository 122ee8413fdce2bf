import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import { aText, requireArgument, requireGiven, texts } from "../../util/given.ts";
import { createControlClient } from "../control/control-client.ts";
import { findHarness } from "../control/find-harness.ts";
import type { Harness } from "./harness-api.ts";

/**
 * The harness that runs at a URL: one that another process has started, such as `x402-kit up`. To close it is to let
 * go of it; it runs on.
 *
 * @param url what `up` prints, with or without `/v1`
 * @param networks those that the caller needs; all that run there by default
 * @throws {ConfigurationError} when an argument is of the wrong kind
 * @throws {KitError} when no harness answers there, or it runs without one of the networks
 *
 * @example
 * const harness = await connectHarness("http://127.0.0.1:4402", ["base"]);
 * await harness.networks.base.advanceTime(3_600);
 */
export async function connectHarness<const N extends NetworkName = BuiltInNetworkName>(
  url: string,
  networks?: readonly N[],
): Promise<Harness<N>> {
  requireArgument("url", url, { ...aText, example: "http://127.0.0.1:4402" });
  requireGiven({ networks }, { networks: { ...texts, example: '["base"]' } });
  const origin = url.replace(/(\/v1)?\/*$/, "");
  const importing = import("./assemble-harness.ts");
  importing.catch(() => {});
  const description = await findHarness(origin);
  const running = Object.keys(description.networks);
  const { assembleHarness } = await importing;
  return assembleHarness(networks ?? (running as readonly NetworkName[] as readonly N[]), {
    description,
    control: createControlClient(origin),
    close: async () => {},
  });
}
