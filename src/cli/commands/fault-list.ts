import { createControlClient } from "../../harness/control/control-client.ts";
import type { FaultReport } from "../../harness/faults/fault-board.ts";
import { defineCommand } from "../kit/command.ts";
import { flag } from "../kit/readers.ts";
import { findHarness, urlOption } from "../kit/running-harness.ts";
import { renderTable } from "../kit/table.ts";

export const faultList = defineCommand({
  options: { json: flag("print JSON"), url: urlOption },

  async run({ json, url }, { print }) {
    await findHarness(url);
    const faults = await createControlClient(url).faults.list();
    if (json) print(JSON.stringify(faults));
    else if (faults.length === 0) print("No fault is set.");
    else {
      const columns = [
        { heading: "id", right: true },
        { heading: "network" },
        { heading: "fault" },
        { heading: "hits", right: true },
      ];
      print(
        renderTable(
          columns,
          faults.map((each) => [each.id, each.network, describeFault(each), `${each.fired}`]),
        ),
      );
    }
    return 0;
  },
});

/** A fault in one line: its kind, and what else was said of it. */
export function describeFault({ id: _, network: __, kind, fired: ___, ...details }: FaultReport): string {
  const told = Object.entries(details).map(([name, value]) => `${name} ${String(value)}`);
  return [kind, ...told].join(", ");
}
