import { readAmount } from "../../config/values.ts";
import { createControlClient } from "../../harness/control/control-client.ts";
import { findHarness, requireRunning } from "../../harness/control/find-harness.ts";
import { addressOption, defineCommand, networkOption, urlOption } from "../kit/command.ts";
import { self } from "../kit/terminal.ts";

export const fund = defineCommand({
  options: {
    network: networkOption,
    to: { ...addressOption("the account"), required: true },
    amount: {
      describe: "how much, in the asset's smallest unit (1 USDC is 1000000)",
      placeholder: "UNITS",
      example: "1000000",
      read: readAmount,
      required: true,
    },
    url: urlOption,
  },

  async run({ network, to, amount, url }, { print }) {
    requireRunning(await findHarness(url, self), network);
    await createControlClient(url).fund(network, to, amount);
    print(`${to} has ${amount} more on ${network} (in the asset's smallest unit).`);
    return 0;
  },
});
