import { readAmount, readWholeNumber } from "../../config/values.ts";
import { createControlClient, type HarnessControl } from "../../harness/control/control-client.ts";
import { findHarness, requireRunning } from "../../harness/control/find-harness.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import {
  addressOption,
  defineCommand,
  networkFileOption,
  networkOption,
  urlOption,
  valueOption,
} from "../kit/command.ts";

/**
 * Control of the `up` that runs at a URL.
 *
 * @throws KitError when none runs there, or it runs without the network
 */
async function controlOf(url: string, network: NetworkName): Promise<HarnessControl> {
  requireRunning(await findHarness(url), network);
  return createControlClient(url);
}

export const fund = defineCommand({
  options: {
    network: networkOption,
    ...networkFileOption,
    to: { ...addressOption("the account"), required: true },
    amount: {
      ...valueOption(
        "how much, in the asset's smallest unit (1 USDC is 1000000)",
        "UNITS",
        "1000000",
        readAmount,
      ),
      required: true,
    },
    url: urlOption,
  },

  async run({ network, to, amount, url }, { print }) {
    await (await controlOf(url, network)).fund(network, to, amount);
    print(`${to} has ${amount} more on ${network} (in the asset's smallest unit).`);
    return 0;
  },
});

export const advanceTime = defineCommand({
  options: {
    network: networkOption,
    ...networkFileOption,
    seconds: {
      ...valueOption("by how many seconds", "SECONDS", "3600", readWholeNumber(1, Number.MAX_SAFE_INTEGER)),
      required: true,
    },
    url: urlOption,
  },

  async run({ network, seconds, url }, { print }) {
    const now = await (await controlOf(url, network)).advanceTime(network, seconds);
    print(`On ${network} it is ${new Date(Number(now) * 1_000).toISOString().replace(".000", "")}.`);
    return 0;
  },
});

export const reset = defineCommand({
  options: { url: urlOption },

  async run({ url }, { print }) {
    const { networks } = await findHarness(url);
    await createControlClient(url).reset();
    print(`${Object.keys(networks).join(", ")} and the facilitator are as they were at the start.`);
    return 0;
  },
});
