import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { localContracts } from "../../../src/payer/local-chains.ts";
import { orderSchema } from "../../../src/payer/payment-order.ts";
import { signOrder } from "../../../src/payer/sign-order.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { runCli } from "../../support/cli.ts";
import { runHere } from "../../support/run-here.ts";
import { type StubShop, startStubShop } from "../../support/stub-shop.ts";

const challenge = {
  x402Version: 1,
  error: "X-PAYMENT header is required",
  accepts: [
    {
      scheme: "exact",
      network: "base",
      maxAmountRequired: "$0.01",
      resource: "https://merchant.example/report",
      payTo: "0x857b06519E91e3A54538791bDbb0E22373e36b66",
      asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
      maxTimeoutSeconds: 60,
    },
  ],
};
const contracts = ["--contract-mainnet", "0x4020000000000000000000000000000000000001"];

test("a challenge in a file is explained: what is wrong, why, and what to change", async () => {
  const directory = await mkdtemp(join(tmpdir(), "x402-kit-explain-"));
  try {
    const file = join(directory, "challenge.json");
    await writeFile(file, JSON.stringify(challenge));
    const { code, stdout, stderr } = await runHere(["explain", file, ...contracts]);
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
    expect(stdout).toMatchInlineSnapshot(`
      "3 things are wrong in this challenge:

      1. The amount is written in dollars (accepts[0].maxAmountRequired)
         got:      "$0.01"
         expected: "10000"
         why:      A decimal point or a currency sign is no number of smallest units.
         fix:      Write the amount in the smallest unit: $0.01 is "10000".
         more:     docs/errors.md#amount-in-dollars

      2. payTo is not the facilitator contract (accepts[0].payTo)
         got:      0x857b06519E91e3A54538791bDbb0E22373e36b66
         expected: the facilitator contract 0x4020000000000000000000000000000000000001
         why:      Payers sign a transfer to the facilitator contract, which forwards it to the wallet of your organization in the same transaction. Your own wallet is a setting of the organization. Only where PAY_TO allows it do payments go straight to a wallet.
         fix:      Set payTo to the facilitator contract of the network, and your wallet with \`x402-kit org set-recipient\` (or \`up --recipient\`). Or have payments go straight to your wallet: \`PAY_TO=any\` (\`up --pay-to any\`).
         more:     docs/errors.md#pay-to-not-accepted

      3. extra does not name the token as it names itself (accepts[0].extra)
         got:      nothing
         expected: {"name":"USD Coin","version":"2"}
         why:      Clients take the name and version to sign for (EIP-712) from \`extra\` of the requirements. USDC is called “USD Coin” on the mainnets and “USDC” on the Sepolia networks.
         fix:      Put the token's own name and version into \`extra\` of what the seller offers; payers then sign for them.
         more:     docs/errors.md#extra-differs
      "
    `);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("text on the command line, as JSON for programs", async () => {
  const header = Buffer.from(JSON.stringify({ x402Version: 1, payload: {} })).toString("base64");
  const { code, stdout } = await runHere(["explain", header, "--json"]);
  const { kind, findings }: { kind: string; findings: { mistake: string }[] } = JSON.parse(stdout);
  expect({ code, kind, first: findings[0]?.mistake }).toEqual({
    code: 1,
    kind: "payment",
    first: "unknown-scheme",
  });
});

test("a file that is not there is not taken for a payment", async () => {
  const { code, stdout, stderr } = await runHere(["explain", "no-such-file.json"]);
  expect({ code, stdout }).toEqual({ code: 4, stdout: "" });
  expect(stderr).toContain("x402-kit explain: no-such-file.json cannot be read");
});

test.each([
  [["explain", ""], 1, "The text is empty", "An unset variable is the usual cause."],
  [["explain"], 2, "TEXT: is needed", "- for what is piped into it"],
])("without a text it says how to give one: %j", async (args, exitCode, problem, hint) => {
  const { code, stdout, stderr } = await runHere(args);
  expect({ code, stdout }).toEqual({ code: exitCode, stdout: "" });
  expect(stderr).toContain(problem);
  expect(stderr).toContain(hint);
});

test("empty stdin is named as what it is", async () => {
  const { code, stdout, stderr } = await runCli(["explain", "-"]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("Nothing came on stdin");
});

test("an answer of success is nothing that went wrong", async () => {
  const { code, stdout } = await runHere(["explain", '{"isValid":true,"payer":"0x1\u009b"}']);
  expect(code).toBe(0);
  expect(stdout).toContain("the payment is valid");
});

test("an id or a hash is no payment, and the command that explains it is named", async () => {
  const id = `0x${"12".repeat(32)}`;
  const { stdout, stderr, code } = await runHere(["explain", id]);
  expect([stdout, code]).toEqual(["", 1]);
  expect(stderr).toContain(`why ${id} explains the payment`);
});

test("a file that never ends is not read for ever", async () => {
  const { stderr, code } = await runHere(["explain", "/dev/zero"]);
  expect(code).toBe(1);
  expect(stderr).toContain("/dev/zero is longer than any payment: more than 1 MiB");
});

const { base } = networks;
const paying = {
  ...base,
  facilitatorContract: localContracts.mainnet,
  payTo: localContracts.mainnet,
  asset: base.usdc,
};

/** Opens a shop; gives its URL. */
async function openShop(shop: StubShop = {}) {
  const { url, close } = await startStubShop(shop);
  onTestFinished(close);
  return url;
}

/** A payment as a shop asks for it. */
async function signFor(shop: StubShop = {}) {
  const answer = await fetch(await openShop(shop));
  const challenge = answer.headers.get("payment-required") ?? (await answer.json());
  const now = BigInt(Math.floor(Date.now() / 1_000));
  return (await signOrder(orderSchema.parse({ challenge }), [paying], () => now)).header;
}

async function mistakesIn(...args: string[]) {
  const { code, stdout, stderr } = await runHere(["explain", ...args, "--json"]);
  if (stdout === "") throw new Error(stderr);
  const { findings }: { findings: { mistake: string; at: string; title?: string }[] } = JSON.parse(stdout);
  return { code, findings, mistakes: findings.map(({ mistake }) => mistake) };
}

const asJson = (header: string) => Buffer.from(header, "base64").toString();

test.each<[string, StubShop, (header: { name: string; value: string }) => string, string[]]>([
  ["is right", {}, ({ name, value }) => `${name}: ${value}`, []],
  ["has no name and is JSON", {}, ({ value }) => asJson(value), []],
  ["is raw JSON", {}, ({ name, value }) => `${name}: ${asJson(value)}`, ["not-encoded"]],
  [
    "is base64url",
    {},
    // Only with a character that is written otherwise there.
    ({ value }) =>
      Buffer.from(asJson(value).replace(/}$/, ',"extensions":{"note":"ÿ?ÿ>"}}')).toString("base64url"),
    ["odd-base64"],
  ],
  ["is encoded twice", {}, ({ value }) => Buffer.from(value).toString("base64"), ["encoded-twice"]],
  ["has version 2 and the name of version 1", {}, ({ value }) => `X-PAYMENT: ${value}`, ["wrong-header"]],
  [
    "has version 1 and the name of version 2",
    { x402Version: 1 },
    ({ value }) => `payment-signature: ${value}`,
    ["wrong-header"],
  ],
])("without a shop, a payment header that %s is explained as such", async (_, shop, write, expected) => {
  const { code, mistakes } = await mistakesIn(write(await signFor(shop)));
  expect([mistakes, code]).toEqual([expected, expected.length === 0 ? 0 : 1]);
});

test.each<[string, StubShop, StubShop, string[]]>([
  ["nothing", {}, {}, []],
  ["a member", {}, { offer: { maxTimeoutSeconds: 300 } }, ["accepted-differs maxTimeoutSeconds"]],
  ["a member of extra", {}, { extra: { tier: "gold" } }, ["accepted-differs extra.tier"]],
  [
    "the price",
    {},
    { offer: { amount: "20000" } },
    ["accepted-differs amount", "amount-differs authorization.value"],
  ],
  [
    "the price, in version 1",
    { x402Version: 1 },
    { x402Version: 1, offer: { maxAmountRequired: "20000" } },
    ["amount-differs authorization.value"],
  ],
  ["the version", { x402Version: 1 }, {}, ["accepted-differs x402Version"]],
])("with --shop, a payment is compared with the offer: %s differs", async (_, signed, offered, expected) => {
  const { name, value } = await signFor(signed);
  const { code, findings } = await mistakesIn(`${name}: ${value}`, "--shop", await openShop(offered));
  expect(findings.map(({ mistake, at }) => `${mistake} ${at}`)).toEqual(expected);
  expect(code).toBe(expected.length === 0 ? 0 : 1);
});

test("the URL of a shop is explained by its 402", async () => {
  expect(await mistakesIn(await openShop())).toMatchObject({ code: 0, mistakes: [] });
  const bad = await openShop({ offer: { amount: "0" }, encode: JSON.stringify });
  expect(await mistakesIn(bad)).toMatchObject({ code: 1, mistakes: ["not-encoded", "amount-zero"] });
  const free = await openShop({ instead: (_, response) => response.end("free") });
  expect(await runHere(["explain", free])).toMatchObject({
    stdout: "",
    stderr: expect.stringContaining("answers 200"),
  });
});
