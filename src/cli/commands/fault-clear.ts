import { KitError } from "../../errors.ts";
import { createControlClient } from "../../harness/control/control-client.ts";
import { defineCommand } from "../kit/command.ts";
import type { Option } from "../kit/options.ts";
import { findHarness, urlOption } from "../kit/running-harness.ts";

const idOption: Option<string | undefined> = {
  describe: "only this one, by its id in `fault list`",
  placeholder: "ID",
  example: "1",
  read: (text) => text,
};

export const faultClear = defineCommand({
  options: { id: idOption, url: urlOption },

  async run({ id, url }, { print }) {
    await findHarness(url);
    const { faults } = createControlClient(url);
    if (id === undefined) {
      await faults.clear();
      print("No fault is set any more.");
    } else if (await faults.remove(id)) {
      print(`The fault ${id} has ended.`);
    } else {
      throw new KitError(`No fault ${id} is set`, { hints: ["x402-kit fault list names those that are."] });
    }
    return 0;
  },
});
