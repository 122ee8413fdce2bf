import { readWholeNumber } from "../../config/values.ts";
import { createControlClient } from "../../harness/control/control-client.ts";
import { findHarness, requireRunning } from "../../harness/control/find-harness.ts";
import { defineCommand, networkOption, urlOption } from "../kit/command.ts";
import { self } from "../kit/terminal.ts";

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
    requireRunning(await findHarness(url, self), network);
    const now = await createControlClient(url).advanceTime(network, seconds);
    print(`On ${network} it is ${new Date(Number(now) * 1_000).toISOString().replace(".000", "")}.`);
    return 0;
  },
});
