import { readWholeNumber } from "../../config/values.ts";
import { createControlClient } from "../../harness/control/control-client.ts";
import { defineCommand } from "../kit/command.ts";
import { networkOption } from "../kit/network-option.ts";
import { findHarness, requireRunning, urlOption } from "../kit/running-harness.ts";

export const advanceTime = defineCommand({
  options: {
    network: networkOption,
    seconds: {
      describe: "by how many seconds",
      placeholder: "SECONDS",
      example: "3600",
      read: readWholeNumber(1, Number.MAX_SAFE_INTEGER),
      required: true,
    },
    url: urlOption,
  },

  async run({ network, seconds, url }, { print }) {
    requireRunning(await findHarness(url), network);
    const now = await createControlClient(url).advanceTime(network, seconds);
    print(`On ${network} it is ${new Date(Number(now) * 1_000).toISOString().replace(".000", "")}.`);
    return 0;
  },
});
