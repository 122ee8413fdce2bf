import { createControlClient } from "../harness/control-client.ts";
import { defineCommand } from "./command.ts";
import { networkOption } from "./network-option.ts";
import { wholeNumber } from "./readers.ts";
import { findHarness, requireRunning, urlOption } from "./running-harness.ts";

export const advanceTime = defineCommand({
  options: {
    network: networkOption,
    seconds: {
      describe: "by how many seconds",
      placeholder: "SECONDS",
      example: "3600",
      read: wholeNumber(1, Number.MAX_SAFE_INTEGER),
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
