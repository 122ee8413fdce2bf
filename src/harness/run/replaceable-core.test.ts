import { expect, test } from "vitest";
import { createReplaceableCore, type MadeCore } from "./replaceable-core.ts";

/** A core that writes down what is done with it. Work that waits for a silent node ends when the core is closed. */
function makeCore(name: string, steps: string[], { waits }: { waits: boolean }): MadeCore {
  const closed = Promise.withResolvers<void>();
  const core: Partial<MadeCore> = {
    facilitator: {} as MadeCore["facilitator"],
    organizations: {} as MadeCore["organizations"],
    channels: {} as MadeCore["channels"],
    start: async () => void steps.push(`${name} starts`),
    async stop() {
      if (waits) await closed.promise;
      steps.push(`${name} has stopped`);
    },
    async close() {
      closed.resolve();
    },
  };
  return core as MadeCore;
}

test("a core whose work does not end by itself sends nothing to chains that are as new", async () => {
  const steps: string[] = [];
  let made = 0;
  const core = await createReplaceableCore(async () => {
    const name = ["first", "second"][made++] ?? "spare";
    return makeCore(name, steps, { waits: name === "first" });
  });
  await core.replace(async () => {
    steps.push("the chains are put back");
    return () => undefined;
  });
  expect(steps).toEqual(["first has stopped", "the chains are put back", "second starts"]);
  await core.close();
});
