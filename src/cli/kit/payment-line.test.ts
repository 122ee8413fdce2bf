import { expect, test } from "vitest";
import { localTokens } from "../../payer/local-chains.ts";
import { self } from "../../util/self-command.ts";
import { createLineRenderer, type PaymentLine, withoutAdvice, withWholeCommands } from "./payment-line.ts";
import { show } from "./terminal.ts";

test.each([
  ["It is late. Sign again.", "Sign again.", "It is late."],
  ["It is late. Sign again, and settle at on...", "Sign again, and settle at once.", "It is late."],
  ["It is late. Sign again", "Sign again.", "It is late."],
  ["It is late.", "Sign again.", "It is late."],
  ["It is late. Sign again", "Mind the clock. Sign again.", "It is late."],
  ["Sign again.", "Sign again.", "Sign again."],
  [
    "It holds 0. Give it more of the token, or lower the price",
    "Give it more of the token, or wait.",
    "It holds 0.",
  ],
  [
    "It is late. Sign again, for payTo.",
    "Sign again, with another key.",
    "It is late. Sign again, for payTo.",
  ],
])("of %j, where %j stands beside it, is shown %j", (message, advice, shown) => {
  expect(withoutAdvice(message, advice)).toBe(shown);
});

const refused: PaymentLine = {
  time: "2026-01-01T00:00:00.000Z",
  operation: "verify",
  id: "0x01",
  network: "base",
  payer: null,
  payerName: "empty",
  amount: null,
  token: null,
  outcome: "invalid",
  status: 200,
  reason: "late",
  message: "It is late.",
  fix: "Sign again.",
  more: null,
  command: null,
  transaction: null,
  tookMs: 1,
};

/** The lines as they look without colours. */
function createPlainRenderer(): (line: PaymentLine) => string {
  const render = createLineRenderer();
  return (line) => show(render(line), false);
}

test("what is wrong with a payment is said of verify, and not again of settle", () => {
  const render = createPlainRenderer();
  const [, ...below] = render(refused).split("\n");
  expect(below).toEqual(["         why: It is late.", "         fix: Sign again."]);
  expect(
    render({ ...refused, operation: "settle" })
      .split("\n")
      .slice(1),
  ).toEqual(["         as verify above"]);
  // Another payment, and another refusal of this one.
  expect(render({ ...refused, id: "0x02" })).toContain("why: It is late.");
  expect(render({ ...refused, operation: "settle", message: "It is used." })).toContain("why: It is used.");
});

test("what was said long ago is said again", () => {
  const render = createPlainRenderer();
  render(refused);
  for (let other = 0; other < 10; other++) render({ ...refused, id: `0x1${other}` });
  expect(render({ ...refused, operation: "settle" })).toContain("why: It is late.");
});

test("what is refused again and again is said again before it is out of sight", () => {
  const render = createPlainRenderer();
  const said = Array.from({ length: 23 }, () => render(refused).includes("why: It is late."));
  expect(said.flatMap((isSaid, line) => (isSaid ? [line] : []))).toEqual([0, 11, 22]);
});

const payer = "0x25164E0f1b0f0d7518E0afc0ac8fCBf65247a438";
const context = {
  at: " --url http://127.0.0.1:4411",
  network: "base",
  payer,
  amount: "1450000",
  asset: null,
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
