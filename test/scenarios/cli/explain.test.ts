import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runCli } from "../../support/cli.ts";
import { runHere } from "../../support/run-here.ts";

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
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toContain("x402-kit explain: no-such-file.json cannot be read");
});

test.each([
  [["explain", ""], "The text is empty", "An unset variable is the usual cause."],
  [["explain"], "TEXT: is needed", "- for what is piped into it"],
])("without a text it says how to give one: %j", async (args, problem, hint) => {
  const { code, stdout, stderr } = await runHere(args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
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
