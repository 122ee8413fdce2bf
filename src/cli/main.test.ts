import { expect, test } from "vitest";
import { type VariableName, variables } from "../config/variables.ts";
import { commands, groupCommands } from "./main.ts";

const rpc = /_RPC_URL$/;
const isSecret = (name: VariableName) => "secret" in variables[name] && !rpc.test(name);

test("no command that reads a key, a password or the file .env counts as keyless", {
  timeout: 60_000,
}, async () => {
  const keyless = commands.filter(([, , , mark]) => mark === "keyless");
  expect(keyless.map(([name]) => name)).toContain("up");
  for (const [name, , load] of keyless) {
    const { usesEnvFile = false, variables: own = [], options } = await load();
    const read = [...own, ...Object.values(options).flatMap(({ variable }) => variable ?? [])];
    expect({ name, usesEnvFile, secrets: read.filter(isSecret) }).toEqual({
      name,
      usesEnvFile: false,
      secrets: [],
    });
  }
});

test("the help has every command once, in a group", () => {
  const helped = groupCommands().flatMap(([, some]) => some.map(([name]) => name));
  expect(helped.toSorted()).toEqual(commands.map(([name]) => name).toSorted());
});
