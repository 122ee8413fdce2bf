import type { Capture } from "../../observe/capture/capture-format.ts";
import type { BuiltInNetworkName, NetworkName } from "../../protocol/networks.ts";
import { controlOf } from "../control/control-client.ts";
import { startHarness } from "../run/start-harness.ts";
import { type CapturedPayment, describeCaptured } from "./captured-payment.ts";
import type { Harness, HarnessOptions } from "./harness-api.ts";
import { readHarnessOptions } from "./read-harness-options.ts";

/**
 * Starts local chains with a facilitator on them, for tests: offline, with everything in place and the test payers
 * funded. However this process ends, the chains end with it.
 *
 * @throws {ConfigurationError} with everything that is wrong with the options
 * @throws {KitError} when something cannot be started; nothing is left running then
 *
 * @example
 * await using harness = await createHarness({ networks: ["base", "polygon"] });
 * const { settle, receipt } = await harness.pay({ network: "base", amount: 10_000n });
 */
export function createHarness<const N extends NetworkName = BuiltInNetworkName>(
  options: HarnessOptions<N> & { capture: string | Capture },
): Promise<Harness<N> & { readonly captured: CapturedPayment }>;
export function createHarness<const N extends NetworkName = BuiltInNetworkName>(
  options?: HarnessOptions<N>,
): Promise<Harness<N>>;
export async function createHarness<const N extends NetworkName = BuiltInNetworkName>(
  options: HarnessOptions<N> = {},
): Promise<Harness<N> & { readonly captured?: CapturedPayment }> {
  const { names, start, logLevel, source } = readHarnessOptions(options);
  // viem takes as long to load as the nodes take to start.
  const importing = Promise.all([import("./assemble-harness.ts"), import("../../observe/log/logger.ts")]);
  importing.catch(() => {});
  const { createLogger } = await import("../../observe/log/logger.ts");
  const running = await startHarness({ ...start, logger: createLogger(logLevel) });
  const [{ assembleHarness }] = await importing;
  const { description, close } = running;
  const harness = assembleHarness(names, { description, control: controlOf(running), close });
  return source === undefined ? harness : { ...harness, captured: describeCaptured(source, harness) };
}
