import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Interruption } from "../../../src/cli/kit/terminal.ts";
import { commands, main } from "../../../src/cli/main.ts";
import {
  type HarnessDescription,
  harnessDescriptionSchema,
} from "../../../src/harness/control/description.ts";
import { pay, signPayment } from "../../../src/harness/control/pay.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { errorCodes } from "../../../src/util/error-codes.ts";
import { sendHttp } from "../../../src/util/http-client.ts";
import { selfWords } from "../../../src/util/self-command.ts";
import { childEnvironment } from "../../support/child-environment.ts";
import { type CliProcess, startCli } from "../../support/cli.ts";

/*
 * Every command for programs: with `--json` one JSON document on stdout, also of a failure, and an exit code that says
 * which kind of failure it was.
 */

let up: CliProcess;
let origin: string;
let folder: string;
let description: HarnessDescription;
let env: Record<string, string>;
beforeAll(async () => {
  up = await startCli(["up", "--port", "0", "--networks", "base", "--no-demo", "--json"]);
  const [line] = await up.printed(/^.+\n/);
  description = harnessDescriptionSchema.parse(JSON.parse(line));
  origin = description.facilitator.url.replace(/\/v1$/, "");
  folder = await mkdtemp(join(tmpdir(), "x402-kit-json-"));
  const { rpcUrl = "", facilitatorContract = "" } = description.networks.base ?? {};
  env = {
    DATABASE_URL: `sqlite:${join(folder, "test.db")}`,
    API_KEY_PEPPER: "9f2c1b7a6e5d4c3b2a1908f7e6d5c4b3",
    BASE_RPC_URL: rpcUrl,
    MY_CHAIN_RPC_URL: rpcUrl,
    FACILITATOR_CONTRACT_MAINNET: facilitatorContract,
    X402_KIT_URL: origin,
  };
});
afterAll(async () => {
  await up?.[Symbol.asyncDispose]();
  if (folder !== undefined) await rm(folder, { recursive: true });
});

/** Runs a command to its end; one that runs until Ctrl-C ends once it has printed. */
async function run(args: readonly string[], variables: Readonly<Record<string, string>> = env) {
  const interruption = new AbortController();
  let stdout = "";
  let stderr = "";
  const code = await main(args, {
    print(text) {
      stdout += `${text}\n`;
      interruption.abort(new Interruption());
    },
    printError(text) {
      stderr += `${text}\n`;
    },
    env: { ...childEnvironment(), ...variables },
    takeSignals: () => interruption.signal,
  });
  return { code, stdout, stderr };
}

const names = commands.map(([name]) => name);
const judges = ["judge client", "judge shop", "conformance"];

test.each(names)("%s --json says of a wrong command line what is wrong, as JSON", async (name) => {
  const { code, stdout, stderr } = await run([...name.split(" "), "--json", "--no-such-option"]);
  const { error } = JSON.parse(stdout);
  expect({ code, error }).toMatchObject({
    code: judges.includes(name) ? 4 : 2,
    error: {
      code: "configuration",
      command: name,
      problems: expect.arrayContaining([expect.objectContaining({ name: "--no-such-option" })]),
    },
  });
  // Nothing is told to people alone.
  for (const { problem } of error.problems) expect(stderr).toContain(problem);
  for (const hint of error.hints) expect(stderr).toContain(hint);
});

const payer = "0x857b06519E91e3A54538791bDbb0E22373e36b66";
const unknownId = `0x${"12".repeat(32)}`;
const onBase = ["--network", "base"];
const org = ["--org", "shop"];
const idOfShop = ["--id", "shop"];
const idOfKey = async () => {
  const { stdout } = await run(["key", "list", ...org, "--json"]);
  return ["--id", String(JSON.parse(stdout).at(-1).keyId)];
};

type Row = {
  args?: () => readonly string[] | Promise<readonly string[]>;
  variables?: Readonly<Record<string, string>>;
  code?: number;
  error?: string;
};

/** How each command is called, in this order, and its exit code where that is another than 0. */
const calls: Readonly<Record<string, Row>> = {
  up: { args: () => ["--port", new URL(origin).port] },
  mock: { args: () => ["--port", "0"] },
  init: { args: () => [join(folder, "shop")] },
  pay: { args: () => onBase },
  payers: {},
  fund: { args: () => [...onBase, "--to", "empty", "--amount", "0.01"] },
  approve: { args: () => [...onBase, "--account", "empty"] },
  why: {},
  logs: { args: () => ["--limit", "1"] },
  "advance-time": { args: () => [...onBase, "--seconds", "1"] },
  fault: { args: () => ["base", "hold-blocks"] },
  "fault list": {},
  "fault clear": {},
  "state save": { args: () => [join(folder, "bug.state"), "--from", origin] },
  reset: {},
  "fork record": { args: () => [...onBase, "--out", join(folder, "fork.json")] },
  network: {
    args: () => {
      const token = description.networks.base?.asset.address ?? "";
      return ["--name", "my-chain", "--token", token, "--tier", "mainnet"];
    },
    // The chain is that of base.
    ...{ code: 2, error: "configuration" },
  },
  explain: { args: () => ['{"x402Version":2}'], code: 1 },
  conformance: { args: () => ["--url", origin, "--cases", "verify.success.funded"] },
  "upstream-e2e": { args: () => ["--commit"] },
  "judge client": { args: () => ["--timeout", "5", "--", "node", "-e", ""], code: 3 },
  "judge shop": { args: () => ["--timeout", "5", "--", "node", "-e", ""], code: 3, error: "failed" },
  deploy: {
    args: () => [...onBase, "--dry-run", "--admin", payer, "--operators", payer],
    variables: { FACILITATOR_CONTRACT_MAINNET: "" },
  },
  migrate: {},
  doctor: { code: 1 },
  recover: { args: () => ["--dry-run"] },
  stranded: {},
  "org create": { args: () => ["--name", "Shop", ...idOfShop] },
  "org list": {},
  "org set-recipient": { args: () => [...idOfShop, ...onBase, "--address", payer] },
  "org set-limits": { args: () => [...idOfShop, ...onBase, "--minimum-amount", "1"] },
  "org show": { args: () => idOfShop },
  "key create": { args: () => org },
  "key list": { args: () => org },
  "key rotate": { args: idOfKey },
  "key revoke": { args: idOfKey },
  "key accept-pepper": {},
  "operator show": { args: () => [...onBase, "--operator", payer] },
  "operator accept-tx-nonce": {
    args: () => [...onBase, "--operator", payer],
    ...{ code: 4, error: "not-found" },
  },
  "settlements list": {},
  "settlements show": { args: () => ["--id", unknownId], code: 4, error: "not-found" },
  "channels list": {},
  "channels show": { args: () => ["--id", unknownId], code: 4, error: "not-found" },
  "channels claim": { args: () => ["/dev/null"], code: 4, error: "not-found" },
  "channels settle": { args: () => [payer, ...onBase], code: 1 },
  "channels refund": { args: () => [unknownId, "--storage", "/dev/null"], code: 4, error: "not-found" },
  "settlements reexamine": {},
  "settlements archive": {
    args: () => ["--before", "2024-01-01", "--out", join(folder, "old.jsonl")],
  },
  // No shops: check.test.ts and buy.test.ts have some.
  check: { args: () => [`${origin}/nothing`], code: 1 },
  buy: { args: () => [`${origin}/nothing`], code: 1 },
  // What it writes is MCP: mcp.test.ts.
  mcp: { args: () => ["--network-file", "/nowhere"], code: 2, error: "configuration" },
  // Its start and its end are those of a process: serve.test.ts.
  serve: { args: () => ["--network-file", "/nowhere"], code: 2, error: "configuration" },
};

test("the table has every command", () => {
  expect(Object.keys(calls).toSorted()).toEqual(names.toSorted());
});

test.each(Object.entries(calls))("%s --json", { timeout: 60_000 }, async (name, row) => {
  const { args, variables, code = 0, error } = row;
  const words = [...name.split(" "), "--json", ...((await args?.()) ?? [])];
  const end = await run(words, { ...env, ...variables });
  expect({ code: end.code, stderr: end.code === code ? "" : end.stderr }).toEqual({ code, stderr: "" });
  const documents = end.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  if (name !== "logs") expect(documents).toHaveLength(1);
  if (error !== undefined) expect(documents[0].error).toMatchObject({ code: error, command: name });
});

test.each(["pay", "fund", "approve", "advance-time", "reset", "fault", "fault list", "why", "logs"])(
  "%s ends with 3 where nothing listens, and names the command that starts it",
  async (name) => {
    const closed = createServer().listen(0, "127.0.0.1");
    await once(closed, "listening");
    const address = closed.address();
    const port = typeof address === "object" ? address?.port : undefined;
    closed.close();
    const args = (await calls[name]?.args?.()) ?? [];
    const words = [...name.split(" "), "--json", ...args, "--url", `http://127.0.0.1:${port}`];
    const { code, stdout, stderr } = await run(words);
    const { error } = JSON.parse(stdout);
    expect({ code, error }).toMatchObject({ code: 3, error: { code: "unreachable", command: name } });
    for (const line of [error.message, ...error.because, ...error.hints]) expect(stderr).toContain(line);
    expect(error.hints.join()).toContain("x402-kit");
  },
);

test.each([
  ["a payment", ["why", unknownId]],
  ["a fault", ["fault", "clear", "--id", "99"]],
  ["a network", ["fund", "--network", "polygon", "--to", "empty", "--amount", "1"]],
  ["an organization", ["org", "show", "--id", "nobody"]],
  ["a key", ["key", "revoke", "--id", "0123456789abcdef"]],
  ["a file", ["explain", "/nowhere/payment.json"]],
])("%s that is not there ends a command with 4", async (_, words) => {
  const { code, stdout } = await run([...words, "--json"]);
  expect([code, JSON.parse(stdout).error.code]).toEqual([4, "not-found"]);
});

test("an unknown command is told as JSON too", async () => {
  const { code, stdout } = await run(["upp", "--json"]);
  expect([code, JSON.parse(stdout)]).toMatchObject([
    2,
    { error: { code: "configuration", message: expect.stringContaining("did you mean up?"), command: "" } },
  ]);
});

test("something else at the address is told from nothing", async () => {
  const { code, stdout } = await run(["reset", "--json", "--url", `${origin}/studio`]);
  expect([code, JSON.parse(stdout).error.code]).toEqual([1, "unexpected-answer"]);
});

test("a refused payment is mended by the command that why gives, and more is a page", async () => {
  await run(["reset"]);
  await pay(description, { network: "base", payer: "empty" });
  const { code, stdout } = await run(["why", "--json", "--brief"]);
  const { causes, ...brief } = JSON.parse(stdout);
  expect([code, brief]).toMatchObject([
    0,
    { operation: "settle", outcome: "invalid", reason: "insufficient_funds", settledAt: null, stale: false },
  ]);
  const [{ command, more, fix }] = causes;
  expect(command).toEqual([...selfWords, "fund", ...command.slice(selfWords.length + 1)]);
  expect(command).toContain(origin);
  expect(fix).toContain(command.slice(0, -2).join(" "));
  const page = await fetch(more);
  expect([page.status, await page.text()]).toEqual([
    200,
    expect.stringContaining(`id="${new URL(more).hash.slice(1)}"`),
  ]);
  const whole = JSON.parse((await run(["why", "--json"])).stdout);
  expect(whole.explanations[0]).toMatchObject({ command, more, fix });
  const { stdout: line } = await run(["logs", "--json", "--limit", "1"]);
  expect(JSON.parse(line.split("\n")[0] ?? "")).toMatchObject({ command, more });

  expect((await run(command.slice(selfWords.length))).code).toBe(0);
  const paid = await run(["pay", "--payer", "empty", "--json"]);
  expect([paid.code, JSON.parse(paid.stdout)]).toMatchObject([0, { settled: true, command: null }]);
  expect(JSON.parse((await run(["why", "--json", "--brief"])).stdout)).toMatchObject({
    ...{ outcome: "settled", causes: [], says: "Nothing is wrong with it: it is settled." },
  });
});

test("a payment that names more than a payer is no command", async () => {
  const { request } = await signPayment(description, { network: "base", payer: "empty" });
  const wrong = JSON.stringify(request).replaceAll(testPayers.empty.address, "0x12 --url http://evil");
  const { stdout } = await run(["explain", wrong, "--json", "--url", origin]);
  expect(stdout).not.toMatch(/"command":\[[^\]]*evil/);
});

test("init writes AGENTS.md, whose commands there are", async () => {
  const { stdout } = await run(["init", join(folder, "other-shop"), "--json"]);
  expect(JSON.parse(stdout).files).toContainEqual({ path: "AGENTS.md", is: "new" });
  const text = await readFile(join(folder, "other-shop/AGENTS.md"), "utf8");
  const named = [...text.matchAll(/x402-kit ([a-z-]+(?: (?:client|shop))?)/g)].map(([, name]) => name);
  expect(named).toContain("why");
  expect(named.filter((name) => name !== "facilitator" && !names.includes(`${name}`))).toEqual([]);
});

test("/llms.txt of up and mock names pages that answer, and no other file", async () => {
  await using mock = await startCli(["mock", "--port", "0", "--json"]);
  const [line] = await mock.printed(/^.+\n/);
  const ofMock = new URL(JSON.parse(line).facilitator.url).origin;
  for (const at of [origin, ofMock]) {
    const text = await (await fetch(`${at}/llms.txt`)).text();
    expect(text.length).toBeLessThan(8_000);
    expect(text).toContain(`x402-kit why --json --brief --url ${at}`);
    const links = [...text.matchAll(/\]\((.*?)\)/g)].map(([, link = ""]) => link);
    expect(links).toContain(`${at}/llms/docs/guides/agents.md`);
    expect(links.every((link) => link.startsWith(`${at}/`))).toBe(true);
    const answers = await Promise.all(links.map(async (link) => [link, (await fetch(link)).status]));
    expect(answers.filter(([, status]) => status !== 200)).toEqual([]);
    for (const path of ["package.json", "docs/../package.json", "docs%2f..%2fpackage.json", ".env", "x.md"]) {
      const { status } = await sendHttp(at, { target: `/llms/${path}` });
      expect([path, status]).toEqual([path, 404]);
    }
  }
});

test("explain names the page of the package where no service shows it", async () => {
  const { code, stdout } = await run(["explain", "bm90IGpzb24", "--json"]);
  const [finding] = JSON.parse(stdout).findings;
  expect([code, finding]).toMatchObject([1, { mistake: "not-json", command: null }]);
  const { pathname, hash, protocol } = new URL(finding.more);
  expect([protocol, hash]).toEqual(["file:", "#not-json"]);
  expect(await readFile(pathname, "utf8")).toContain('<a id="not-json"></a>');
});

test("every exit code of an error is one of the table in the help", async () => {
  const { stdout } = await run(["--help"], {});
  for (const { exit } of Object.values(errorCodes)) expect(stdout).toMatch(new RegExp(`[ ,:]${exit} `));
});
