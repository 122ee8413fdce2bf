import { createControlClient } from "../../harness/control/control-client.ts";
import { defineCommand } from "../kit/command.ts";
import { findHarness, urlOption } from "../kit/running-harness.ts";

export const reset = defineCommand({
  options: { url: urlOption },

  async run({ url }, { print }) {
    const { networks } = await findHarness(url);
    await createControlClient(url).reset();
    print(`${Object.keys(networks).join(", ")} and the facilitator are as they were at the start.`);
    return 0;
  },
});
