import { readAddress, readAmount } from "../../config/values.ts";
import { createControlClient } from "../../harness/control/control-client.ts";
import { defineCommand } from "../kit/command.ts";
import { networkOption } from "../kit/network-option.ts";
import { findHarness, requireRunning, urlOption } from "../kit/running-harness.ts";

export const fund = defineCommand({
  options: {
    network: networkOption,
    to: {
      describe: "the account",
      placeholder: "ADDRESS",
      example: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
      read: readAddress,
      required: true,
    },
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
    requireRunning(await findHarness(url), network);
    await createControlClient(url).fund(network, to, amount);
    print(`${to} has ${amount} more on ${network} (in the asset's smallest unit).`);
    return 0;
  },
});
