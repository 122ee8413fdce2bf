import { expect, test } from "vitest";
import { self } from "../../util/self-command.ts";
import { withWholeCommands } from "./whole-commands.ts";

const payer = "0x25164E0f1b0f0d7518E0afc0ac8fCBf65247a438";
const context = {
  ...{ at: " --url http://127.0.0.1:4411", network: "base", payer, amount: "1450000" },
  token: { symbol: "USDC", decimals: 6 },
};

test.each([
  ["x402-kit fund", `fund --network base --to ${payer} --amount 1.45 --url http://127.0.0.1:4411`],
  ["x402-kit approve", `approve --network base --account ${payer} --url http://127.0.0.1:4411`],
  ["x402-kit reset", "reset --url http://127.0.0.1:4411"],
  ["x402-kit doctor", "doctor"],
])("the command %s is one that can be pasted", (command, whole) => {
  expect(withWholeCommands(`Now: \`${command}\`.`, context)).toBe(`Now: \`${self} ${whole}\`.`);
});

test("what is not known is left to the reader", () => {
  const unknown = { ...context, payer: null };
  expect(withWholeCommands("`x402-kit approve`", unknown)).toBe(`\`${self} approve\``);
});
