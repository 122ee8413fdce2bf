import { createControlClient } from "../../harness/control/control-client.ts";
import { findHarness } from "../../harness/control/find-harness.ts";
import { defineCommand, urlOption } from "../kit/command.ts";
import { self } from "../kit/terminal.ts";

export const reset = defineCommand({
  options: { url: urlOption },

  async run({ url }, { print }) {
    const { networks } = await findHarness(url, self);
    await createControlClient(url).reset();
    print(`${Object.keys(networks).join(", ")} and the facilitator are as they were at the start.`);
    return 0;
  },
});
