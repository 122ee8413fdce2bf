import { expect, test } from "vitest";
import { withWholeCommands } from "../../cli/kit/payment-line.ts";
import { localTokens } from "../../published/local-chains.ts";
import { self } from "../../util/self-command.ts";

const payer = "0x25164E0f1b0f0d7518E0afc0ac8fCBf65247a438";
const context = {
  ...{ at: " --url http://127.0.0.1:4411", network: "base", payer, amount: "1450000", asset: null },
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

test("a payment in another local token than USDC is mended in that token", () => {
  const inUsdt = { ...context, asset: localTokens.usdt.address.toLowerCase() };
  const options = (words: string) => withWholeCommands(`\`x402-kit ${words}\``, inUsdt);
  expect(options("fund")).toContain(`--to ${payer} --asset usdt --amount 1.45`);
  expect(options("approve")).toContain(`--account ${payer} --asset usdt`);
});

test("what is not known is left to the reader", () => {
  const unknown = { ...context, payer: null };
  expect(withWholeCommands("`x402-kit approve`", unknown)).toBe(`\`${self} approve\``);
});
