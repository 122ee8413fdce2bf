import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import { aText, requireArgument, requireGiven, texts } from "../../util/given.ts";
import { controlOf, createControlClient } from "../control/control-client.ts";
import { findHarness } from "../control/description.ts";
import { startHarness } from "../run/start-harness.ts";
import type { CheckedNames, Harness, HarnessSettings } from "./harness-api.ts";
import { readHarnessOptions } from "./read-harness-options.ts";

/**
 * Starts local chains with a facilitator for tests: offline, fully set up, and with funded test payers. The chains end
 * with this process, however it ends.
 *
 * @throws {ConfigurationError} listing everything that is wrong with the options
 * @throws {KitError} if something cannot be started; nothing is left running then
 *
 * @example
 * await using harness = await createHarness({ networks: ["base", "polygon"] });
 * const { settle, receipt } = await harness.pay({ network: "base", amount: 10_000n });
 */
export function createHarness<
  const N extends NetworkName = BuiltInNetworkName,
  File extends HarnessSettings["networkFile"] = undefined,
>(options?: HarnessSettings<N> & { networkFile?: File } & CheckedNames<N, File>): Promise<Harness<N>>;
export async function createHarness<const N extends NetworkName = BuiltInNetworkName>(
  options: HarnessSettings<N> = {},
): Promise<Harness<N>> {
  const { names, start, logLevel } = readHarnessOptions(options);
  // Loaded in parallel: viem takes as long to load as the nodes take to start.
  const importing = Promise.all([import("./assemble-harness.ts"), import("../../observe/log/logger.ts")]);
  importing.catch(() => {});
  const { createLogger } = await import("../../observe/log/logger.ts");
  const running = await startHarness({ ...start, logger: createLogger(logLevel) });
  const [{ assembleHarness }] = await importing;
  const { description, close } = running;
  return assembleHarness(names, { description, control: controlOf(running), close });
}

/**
 * Connects to a harness that another process has started, such as `x402-kit up`. Closing it only disconnects; the harness
 * keeps running.
 *
 * @param url the URL that `up` prints, with or without `/v1`
 * @param networks the networks that the caller needs; all that run there by default
 * @throws {ConfigurationError} if an argument has the wrong type
 * @throws {KitError} if no harness answers there, or it does not run one of the networks
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
