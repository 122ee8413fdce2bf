import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json as readJson } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { generatePrivateKey, privateKeyToAddress } from "viem/accounts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { judgeTable } from "../../support/judge/judge-tables.ts";
import { listenOnLoopback } from "../../support/loopback-server.ts";
import { runHere } from "../../support/run-here.ts";
import { runningChain } from "../../support/running-chain.ts";
import { startTestHarness } from "../../support/service.ts";

/* Facilitators that are wrong in one way each, as a proxy in front of the right one: the table of the guide. */

type Answer = { status: number; body: Record<string, unknown> };
/** Asks the facilitator behind the proxy, with the same body. */
type AskBehind = (operation: "verify" | "settle", body: unknown) => Promise<Answer>;
type Sent = { operation: "verify" | "settle"; body: unknown; ask: AskBehind };
type WrongFacilitator = {
  /** The line of the guide. */
  what: string;
  answer: (sent: Sent) => Promise<Answer>;
  cases: string;
  /** Where the report finds it. */
  finds: readonly [scenario: string, at: string];
  /** True if it is found only by asking the chain. */
  byChain?: boolean;
};

const another = testPayers.empty.address;
const noTransaction = `0x${"ab".repeat(32)}`;

const right: WrongFacilitator["answer"] = ({ operation, body, ask }) => ask(operation, body);

/** The right answer, with members of a success replaced. */
const inSuccess =
  (members: Record<string, unknown>) =>
  async ({ operation, body, ask }: Sent): Promise<Answer> => {
    const right = await ask(operation, body);
    const isYes = right.body.success === true || right.body.isValid === true;
    return isYes ? { ...right, body: { ...right.body, ...members } } : right;
  };

/** Says yes where the right one has a reason to say no. */
const blindTo =
  (reason: string) =>
  async ({ operation, body, ask }: Sent): Promise<Answer> => {
    const right = await ask(operation, body);
    if (operation === "settle" || right.body.invalidReason !== reason) return right;
    return { status: 200, body: { isValid: true, payer: right.body.payer } };
  };

const wrongOnes: readonly WrongFacilitator[] = [
  {
    what: "its verify moves the money, and says that the payment is valid",
    answer: async ({ operation, body, ask }) => {
      if (operation === "settle") return ask(operation, body);
      const right = await ask("verify", body);
      if (right.body.isValid === true) await ask("settle", body);
      return right;
    },
    cases: "verify.success.funded",
    finds: ["verify.success.funded", "chain"],
    byChain: true,
  },
  {
    what: "its verify uses the payment up, and says so when it is asked again",
    answer: async ({ operation, body, ask }) => {
      const right = await ask(operation, body);
      if (operation === "verify" && right.body.isValid === true) await ask("settle", body);
      return right;
    },
    cases: "verify.v2.success.funded",
    finds: ["verify.v2.success.funded", "verified again: body.isValid"],
  },
  {
    what: "its settle says success, and moves nothing",
    answer: async ({ operation, body, ask }) => {
      const right = await ask("verify", body);
      if (operation === "verify" || right.body.isValid !== true) return right;
      const { payer } = right.body;
      return { status: 200, body: { success: true, transaction: noTransaction, network: "base", payer } };
    },
    cases: "settle.success.funded",
    finds: ["settle.success.funded", "chain"],
    byChain: true,
  },
  {
    what: "its settle says failure, and moves the money",
    answer: async ({ operation, body, ask }) => {
      const right = await ask(operation, body);
      if (operation === "verify" || right.body.success !== true) return right;
      const members = { success: false, errorReason: "invalid_transaction_state", transaction: "" };
      return { status: 200, body: { ...right.body, ...members } };
    },
    cases: "settle.success.funded",
    finds: ["settle.success.funded", "chain"],
    byChain: true,
  },
  {
    what: "its settle names another network",
    answer: inSuccess({ network: "polygon" }),
    cases: "settle.success.funded",
    finds: ["settle.success.funded", "body.network"],
  },
  {
    what: "its settle names another payer",
    answer: inSuccess({ payer: another }),
    cases: "settle.v2.success.funded",
    finds: ["settle.v2.success.funded", "body.payer"],
  },
  {
    what: "its verify names another payer",
    answer: inSuccess({ payer: another }),
    cases: "verify.success.funded",
    finds: ["verify.success.funded", "body.payer"],
  },
  {
    what: "its settle names no transaction",
    answer: inSuccess({ transaction: "" }),
    cases: "settle.success.funded",
    finds: ["settle.success.funded", "body.transaction"],
  },
  {
    what: "its settle succeeds twice for one payment",
    answer: async ({ operation, body, ask }) => {
      const right = await ask(operation, body);
      if (operation === "verify" || right.body.errorReason !== "invalid_transaction_state") return right;
      const { network, payer } = right.body;
      return { status: 200, body: { success: true, transaction: noTransaction, network, payer } };
    },
    cases: "settle.invalid_transaction_state.used_before",
    finds: ["settle.invalid_transaction_state.used_before", "body.success"],
  },
  {
    what: "does not look at the signature",
    answer: blindTo("invalid_exact_evm_payload_signature"),
    cases: "verify.invalid_exact_evm_payload_signature",
    finds: ["verify.invalid_exact_evm_payload_signature.wrong_signer", "body.isValid"],
  },
  {
    what: "does not look at the balance",
    answer: blindTo("insufficient_funds"),
    cases: "verify.insufficient_funds.empty",
    finds: ["verify.insufficient_funds.empty", "body.isValid"],
  },
  {
    what: "does not look at the amount",
    answer: blindTo("invalid_exact_evm_payload_authorization_value"),
    cases: "verify.invalid_exact_evm_payload_authorization_value.value_below",
    finds: ["verify.invalid_exact_evm_payload_authorization_value.value_below", "body.isValid"],
  },
  {
    what: "does not look at the time",
    answer: blindTo("invalid_exact_evm_payload_authorization_valid_before"),
    cases: "verify.invalid_exact_evm_payload_authorization_valid_before",
    finds: ["verify.invalid_exact_evm_payload_authorization_valid_before.expired", "body.isValid"],
  },
  {
    what: "refuses good payments",
    answer: async ({ operation, body, ask }) => {
      const right = await ask(operation, body);
      if (right.body.isValid !== true) return right;
      return { status: 200, body: { isValid: false, invalidReason: "invalid_payload" } };
    },
    cases: "verify.success.funded",
    finds: ["verify.success.funded", "body.isValid"],
  },
];

let harness: RunningHarness;
let env: Record<string, string>;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"] });
  const payerKey = generatePrivateKey();
  await runningChain(harness, "base").fund(privateKeyToAddress(payerKey), 1_000_000n);
  const { key } = await harness.organizations.createKey("org_local", { scopes: ["verify", "settle"] });
  env = { X402_API_KEY: key, PAYER_PRIVATE_KEY: payerKey };
});
afterAll(() => harness?.close());

const reportSchema = z.object({
  couldNotJudge: z.string().optional(),
  wrong: z.number(),
  differs: z.number(),
  passed: z.number(),
  scenarios: z.array(
    z.object({
      name: z.string(),
      outcome: z.string(),
      why: z.string().optional(),
      level: z.string().optional(),
      differences: z.array(z.object({ at: z.string() })).optional(),
    }),
  ),
});

/** Runs the command against a proxy in front of the service. */
async function judge(
  answer: WrongFacilitator["answer"],
  args: readonly string[],
  variables: Record<string, string> = env,
) {
  const { origin } = new URL(harness.description.facilitator.url);
  const proxy = await listenOnLoopback(async (request, response) => {
    const { authorization = "" } = request.headers;
    const send = async (path: string, body?: unknown): Promise<Answer> => {
      const options = { method: request.method ?? "GET", headers: { authorization }, body };
      const { status, body: json } = await requestJson(`${origin}${path}`, options);
      return { status, body: z.record(z.string(), z.unknown()).parse(json) };
    };
    const path = request.url ?? "";
    const ask: AskBehind = (operation, body) => send(`/v1/${operation}`, body);
    const operation = path.endsWith("/settle") ? "settle" : "verify";
    const { status, body } = path.endsWith("/supported")
      ? await send(path)
      : await answer({ operation, body: await readJson(request), ask });
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  const contract = runningChain(harness, "base").facilitatorContract;
  const command = ["conformance", "--url", proxy.origin, "--pay-to", contract, "--json", ...args];
  try {
    const { code, stdout } = await runHere(command, variables);
    return { code, report: reportSchema.parse(JSON.parse(stdout)) };
  } finally {
    await proxy.close();
  }
}

const rpcUrl = () => runningChain(harness, "base").rpcUrl;

test.each(wrongOnes)("wrong is one that $what", async ({ answer, cases, finds, byChain = false }) => {
  const byRpc = byChain ? ["--rpc-url", rpcUrl()] : [];
  const { code, report } = await judge(answer, ["--cases", cases, ...byRpc]);
  const [scenario, at] = finds;
  const found = report.scenarios.find(({ name }) => name === scenario);
  expect(found).toMatchObject({ outcome: "failed", level: "wrong" });
  expect(found?.differences?.map((difference) => difference.at)).toContain(at);
  expect(code).toBe(1);
});

test("the right one behind them is not wrong, with or without the chain", async () => {
  for (const byRpc of [[], ["--rpc-url", rpcUrl()]]) {
    for (const cases of new Set(wrongOnes.map(({ cases }) => cases))) {
      const { code, report } = await judge(right, ["--cases", cases, ...byRpc]);
      expect({ cases, code, wrong: report.wrong }).toEqual({ cases, code: 0, wrong: 0 });
    }
  }
});

test("a payer without money is not the facilitator's fault, whether or not the chain can be asked", async () => {
  const poor = { ...env, PAYER_PRIVATE_KEY: generatePrivateKey() };
  const chosen = ["--cases", "e.v2.success.funded"];
  const blind = await judge(right, chosen, poor);
  expect(blind).toMatchObject({ code: 3, report: { wrong: 0, differs: 0, passed: 0 } });
  expect(blind.report.scenarios[0]?.why).toContain("the facilitator says that the payer lacks the money");
  const seeing = await judge(right, [...chosen, "--rpc-url", rpcUrl()], poor);
  expect(seeing).toMatchObject({ code: 3, report: { wrong: 0, passed: 0 } });
  expect(seeing.report.scenarios[0]?.why).toContain("holds 0 USDC");
  // One that only says so is wrong, as soon as the chain can be asked.
  const liar: WrongFacilitator["answer"] = async () => ({
    status: 200,
    body: { isValid: false, invalidReason: "insufficient_funds" },
  });
  expect((await judge(liar, chosen)).code).toBe(3);
  expect((await judge(liar, [...chosen, "--rpc-url", rpcUrl()])).code).toBe(1);
});

test("on a chain that has the test payers, they pay, and no key of a payer is needed", async () => {
  const { X402_API_KEY = "" } = env;
  const args = ["--cases", "settle.success", "--rpc-url", rpcUrl()];
  const { code, report } = await judge(right, args, { X402_API_KEY });
  expect(code).toBe(0);
  const passed = report.scenarios.filter(({ outcome }) => outcome === "passed").map(({ name }) => name);
  expect(passed).toEqual(
    expect.arrayContaining(["funded", "smart_wallet", "delegated"].map((name) => `settle.success.${name}`)),
  );
});

test("the report is written where nothing could be judged, too", async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-conformance-"));
  const file = join(folder, "report.xml");
  try {
    const command = ["conformance", "--url", "http://127.0.0.1:1", "--json", "--junit", file];
    const { code, stdout } = await runHere(command);
    expect(code).toBe(3);
    expect(JSON.parse(stdout)).toMatchObject({
      couldNotJudge: "Nothing answers at http://127.0.0.1:1",
    });
    expect(await readFile(file, "utf8")).toContain(
      '<error message="Nothing answers at http://127.0.0.1:1"/>',
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("an answer that takes longer than --timeout is none", async () => {
  const slow: WrongFacilitator["answer"] = async ({ operation, body, ask }) => {
    await setTimeout(1_500);
    return ask(operation, body);
  };
  const { code, report } = await judge(slow, ["--cases", "verify.v2.success.funded", "--timeout", "1"]);
  expect(code).toBe(1);
  expect(report.scenarios[0]?.differences).toMatchObject([{ at: "answer" }]);
});

test("the guide has each of them, and no other facilitator", () => {
  const rows = wrongOnes.map(({ what, finds, byChain }) => [
    what,
    `\`${finds[0]}\`${byChain ? ", with `--rpc-url`" : ""}`,
  ]);
  expect(judgeTable("a facilitator is wrong that …").toSorted()).toEqual(rows.toSorted());
});
