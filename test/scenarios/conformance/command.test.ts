import { mkdtemp, readFile, rm } from "node:fs/promises";
import type { RequestListener } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generatePrivateKey, privateKeyToAccount, privateKeyToAddress } from "viem/accounts";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { main } from "../../../src/cli/main.ts";
import { createControlClient } from "../../../src/harness/control/control-client.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { listenOnLoopback } from "../../support/loopback-server.ts";
import { runningChain } from "../../support/running-chain.ts";
import { startTestHarness } from "../../support/service.ts";

/* `x402-kit conformance` against facilitators that are right, wrong, and none. */

let harness: RunningHarness;
let origin: string;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"] });
  ({ origin } = new URL(harness.description.facilitator.url));
});
afterAll(() => harness?.close());

const endings: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0)) await end();
});

async function run(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const lines: string[] = [];
  const print = (text: string) => void lines.push(text);
  const printError = (text: string) => (/^\d+ of \d+ scenarios/.test(text) ? undefined : print(text));
  const takeSignals = () => new AbortController().signal;
  const code = await main(["conformance", ...args], { print, printError, env, takeSignals });
  return { code, output: lines.join("\n").replaceAll(/127\.0\.0\.1:\d+/g, "127.0.0.1:PORT") };
}

/** A server that lists base, and gives one answer to every payment. */
async function startImpostor(
  answer: (url: string, headers: Record<string, unknown>) => object,
  signers?: object,
) {
  return startServer((request, response) => {
    const kinds = [{ x402Version: 1, scheme: "exact", network: "base" }];
    const body =
      request.url === "/v1/supported" ? { kinds, signers } : answer(request.url ?? "", request.headers);
    request.resume();
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
}

async function startServer(handle: RequestListener): Promise<string> {
  const server = await listenOnLoopback(handle);
  endings.push(server.close);
  return server.origin;
}

describe("against a running harness", () => {
  test("all that can be seen from outside passes, and the report says what could not be", async () => {
    const { code, output } = await run(["--url", `${origin}/v1`, "--cases", "settle.insufficient_funds"]);
    expect(output).toMatchInlineSnapshot(`
      "x402 conformance of http://127.0.0.1:PORT/v1 on base
      Compared: headers and bodies, to the letter

      scenarios           passed  wrong  differs  kit only  not run
      ──────────────────  ──────  ─────  ───────  ────────  ───────
      insufficient_funds       2      0        0         0        1
      all                      2      0        0         0        1

      Not run
           1  needs a fault around the facilitator: balance_taken_up

      All 2 scenarios are good. 1 could not be run, for the reasons above."
    `);
    expect(code).toBe(0);
  });

  test("payments are made, and the chain says the same of them", async () => {
    const { code, output } = await run(["--url", origin, "--cases", ".success."]);
    expect(output).toMatch(/\nAll \d\d scenarios are good\./);
    expect(code).toBe(0);
  });

  test("a payer that was given money is not the facilitator's fault: its scenarios are not run", async () => {
    const { empty } = testPayers;
    await harness.chains.base?.fund(empty.address, 1_000_000n);
    const { code, output } = await run(["--url", origin, "--cases", "verify.insufficient_funds"]);
    expect(output).toContain("  the payer empty holds 1 USDC: run npx --no-install x402-kit reset:\n");
    expect(output).not.toContain(" wrong and ");
    await createControlClient(origin).reset();
    expect((await run(["--url", origin, "--cases", "verify.insufficient_funds"])).output).not.toContain(
      "holds",
    );
    expect(code).toBe(0);
  });

  test("the report is there as JSON, as JUnit XML and as a page", async () => {
    const directory = await mkdtemp(join(tmpdir(), "x402-conformance-"));
    endings.push(() => rm(directory, { recursive: true }));
    const file = join(directory, "report.xml");
    const page = join(directory, "report.html");
    const formats = ["--json", "--junit", file, "--html", page];
    const { code, output } = await run(["--url", origin, "--cases", "v2.in", ...formats]);
    expect(code).toBe(0);
    const report = JSON.parse(output);
    expect(report).toMatchObject({ network: "base", compared: "everything", failed: 0 });
    expect(report.scenarios).toHaveLength(report.passed + report.notRun);
    const xml = await readFile(file, "utf8");
    expect(xml).toContain(
      `tests="${report.scenarios.length}" failures="0" errors="0" skipped="${report.notRun}"`,
    );
    expect(xml.match(/<testcase /g)).toHaveLength(report.scenarios.length);
    expect((await readFile(page, "utf8")).match(/<details /g)).toHaveLength(report.scenarios.length);
  });
});

describe("against a facilitator that is not of this kit", () => {
  /** The same service, called by an organization and paid by an account whose key is not published. */
  async function others(): Promise<{ args: string[]; env: Record<string, string> }> {
    const base = runningChain(harness, "base");
    const payerKey = generatePrivateKey();
    await base.fund(privateKeyToAddress(payerKey), 1_000_000n);
    const { key } = await harness.organizations.createKey("org_local", { scopes: ["verify", "settle"] });
    const args = ["--url", origin, "--pay-to", base.facilitatorContract];
    return { args, env: { X402_API_KEY: key, PAYER_PRIVATE_KEY: payerKey } };
  }

  test("what needs neither published keys nor test payers passes", async () => {
    const { args, env } = await others();
    const { code, output } = await run(args, env);
    expect(output).toContain("Compared: status, verdict and reason; messages and headers are its own");
    expect(output).toMatch(
      /\nAll 2\d\d scenarios are good\. 2\d\d could not be run, for the reasons above\.$/,
    );
    expect(output).toMatch(/\d+ {2}needs a test payer that only local chains have: smartWallet, delegated/);
    expect(output).toMatch(/\d+ {2}needs an API key that only this kit has: noRecipient/);
    expect(code).toBe(0);
    expect(output).not.toContain(env.X402_API_KEY);
  });

  test("what is paid by Permit2 needs a payer who has approved it", async () => {
    const { args, env } = await others();
    const filtered = [...args, "--cases", "success"];
    expect((await run(filtered, env)).output).toMatch(
      /5 {2}needs a payer who has approved Permit2 on the token/,
    );
    const { address } = privateKeyToAccount(`0x${(env.PAYER_PRIVATE_KEY ?? "").slice(2)}`);
    await runningChain(harness, "base").approvePermit2(address, 1_000_000n);
    const { code, output } = await run(filtered, env);
    expect(output).not.toContain("has approved Permit2");
    expect(code).toBe(0);
  });

  test("what settles needs a payer, and where to pay must be known", async () => {
    const { args, env } = await others();
    const { X402_API_KEY = "" } = env;
    const withoutPayer = await run([...args, "--cases", "success.funded"], { X402_API_KEY });
    expect(withoutPayer).toMatchObject({ code: 3 });
    expect(withoutPayer.output).toContain("4  needs a payer who has money: set PAYER_PRIVATE_KEY");
    expect((await run(["--url", origin], { X402_API_KEY })).output).toMatchInlineSnapshot(`
      "x402-kit conformance: Where payments must go is not known
        Give the address that this facilitator wants as payTo: --pay-to ADDRESS
        Of a facilitator of this kit, it is the facilitator contract; of others, usually any wallet of yours."
    `);
  });
});

describe("against what is wrong", () => {
  test("a server that answers success to everything fails where it must", async () => {
    const url = await startImpostor((path) =>
      path.endsWith("verify")
        ? { isValid: true }
        : { success: true, transaction: `0x${"ab".repeat(32)}`, network: "base" },
    );
    const args = ["--url", url, "--pay-to", harness.chains.base?.facilitatorContract ?? ""];
    const env = { X402_API_KEY: "of-another", PAYER_PRIVATE_KEY: generatePrivateKey() };
    const { code, output } = await run([...args, "--cases", "funded"], env);
    expect(output).toContain("All 2 scenarios are good.");
    expect(code).toBe(0);
    const failing = await run([...args, "--cases", "unauthorized.no_key"], env);
    expect(failing.output).toMatchInlineSnapshot(`
      "x402 conformance of http://127.0.0.1:PORT/v1 on base
      Compared: status, verdict and reason; messages and headers are its own

      scenarios     passed  wrong  differs  kit only  not run
      ────────────  ──────  ─────  ───────  ────────  ───────
      unauthorized       0      0        0         2        2
      all                0      0        0         2        2

      Kit only: choices of this kit, which other facilitators need not share
        verify.unauthorized.no_key: status: expected 401, got 200
          There is no API key: 401.
            status
              - 401
              + 200
          The same in settle.unauthorized.no_key

      Not run
           2  the facilitator lists no version 2 of the protocol for the network:
              verify.v2.unauthorized.no_key, settle.v2.unauthorized.no_key

      No scenario was judged. 2 are choices of this kit, and not counted. 2 could not be run, for the reasons above."
    `);
    expect(failing.code).toBe(0);
    const all = await run(args, env);
    expect(all.output).toMatch(/\nOf \d+ scenarios [1-9]\d* are wrong and \d+ differ/);
    expect(all.output.replace(/\s+/g, " ")).toContain(
      "Specification v1, 5.2.2: PaymentPayload: fields, their types, and that they are required",
    );
    expect(all.output).toMatch(
      /\nThe run is not complete: stopped after 10 equal failures in succession: status 200, isValid true\.$/,
    );
    expect(all.code).toBe(1);
    // Nothing but the plain successes is right.
    expect(all.output).toMatch(/^success +4 +0 /m);
    expect(all.output).not.toMatch(/^(invalid|unsupported|insufficient)_\w+ +[1-9]/m);
  });

  test("what a server repeats of the API key is not printed", async () => {
    const url = await startImpostor((_, { authorization }) => ({
      isValid: false,
      invalidReason: `for ${authorization}`,
      payer: [{ [`${authorization}`]: true }],
    }));
    const { output } = await run(
      ["--url", url, "--pay-to", `0x${"12".repeat(20)}`, "--cases", "verify.success.funded"],
      {
        X402_API_KEY: 'hush"hush\\',
        PAYER_PRIVATE_KEY: generatePrivateKey(),
      },
    );
    expect(output).toContain('+ "for <secret>"');
    expect(output).not.toContain("hush");
  });

  test("an API key of another organization is reported", async () => {
    const args = [
      "--url",
      origin,
      "--pay-to",
      `0x${"12".repeat(20)}`,
      "--cases",
      "invalid_payload.malformed",
    ];
    const { code, output } = await run(args, { X402_API_KEY: "of-another" });
    expect(code).toBe(3);
    expect(output).toMatch(
      /Of 4 scenarios 0 are wrong and 4 differ.*\nEvery failure is a 401\. Is the API key one of this facilitator/,
    );
  });

  test("what a server sends does nothing to the terminal", async () => {
    const url = await startImpostor(() => ({ isValid: true, "\u001b[2J": "\u001b[2J" }), {
      "eip155:*": [harnessAccounts.operator.address],
    });
    const { output } = await run(["--url", url, "--cases", "verify.success.funded"]);
    expect(output).toContain("body.\\u001b[2J");
    expect(output).not.toContain("\u001b");
  });

  test.each([
    ["bearer", "X-API-Key", { "x-api-key": "Bearer of-another" }],
    ["bare", "Authorization", { authorization: "of-another" }],
    ["none", "Authorization", {}],
  ])("the API key is sent as %s in %s, and verify is found at the root", async (auth, header, expected) => {
    const seen: object[] = [];
    const url = await startServer((request, response) => {
      const kinds = [{ x402Version: 2, scheme: "exact", network: "eip155:8453" }];
      if (request.url === "/verify") {
        const { authorization, "x-api-key": own } = request.headers;
        seen.push({ ...(authorization && { authorization }), ...(own && { "x-api-key": own }) });
      }
      request.resume();
      const isThere = request.url === "/supported" || request.url === "/verify";
      const body = request.url === "/supported" ? { kinds } : { isValid: true };
      response
        .writeHead(isThere ? 200 : 404, { "content-type": "application/json" })
        .end(JSON.stringify(body));
    });
    const payTo = `0x${"12".repeat(20)}`;
    const args = ["--url", url, "--pay-to", payTo, "--auth", auth, "--auth-header", header];
    const env = { X402_API_KEY: "of-another", PAYER_PRIVATE_KEY: generatePrivateKey() };
    const { code } = await run([...args, "--cases", "verify.v2.success.funded", "--parallel", "2"], env);
    expect({ code, seen }).toEqual({ code: 0, seen: [expected, expected] });
  });

  test("a payer's key that is none is told of, and not repeated", async () => {
    const key = `0x${"f".repeat(64)}`;
    const args = ["--url", origin, "--pay-to", `0x${"12".repeat(20)}`];
    const { code, output } = await run(args, { X402_API_KEY: "of-another", PAYER_PRIVATE_KEY: key });
    expect(output).toContain("PAYER_PRIVATE_KEY: is not a private key");
    expect(output).not.toContain(key);
    expect(code).toBe(4);
  });

  test("a facilitator that leaves in the middle is not asked for ever", async () => {
    const server = await listenOnLoopback((_, response) => {
      const kinds = [{ x402Version: 1, scheme: "exact", network: "base" }];
      const headers = { "content-type": "application/json", connection: "close" };
      response.writeHead(200, headers).end(JSON.stringify({ kinds }), () => {
        // No further question is asked before this one is answered.
        closing ??= server.close();
      });
    });
    let closing: Promise<void> | undefined;
    const args = ["--url", server.origin, "--pay-to", `0x${"12".repeat(20)}`];
    const { code, output } = await run(args, { X402_API_KEY: "of-another" });
    await closing;
    expect(code).toBe(3);
    expect(output).toContain("+ none: connect ECONNREFUSED 127.0.0.1:PORT");
    expect(output).toMatch(/\d+ {2}the facilitator does not answer any more/);
    expect(Number(/^all +\d+ +(\d+)/m.exec(output)?.[1])).toBeLessThan(15);
  });

  test("no server, no facilitator, and no such scenario or network are told apart", async () => {
    const page = await startServer((_, response) => response.writeHead(404).end("<html>nothing here</html>"));
    const closed = await listenOnLoopback(() => {});
    await closed.close();
    const told = [
      await run(["--url", closed.origin]),
      await run(["--url", page]),
      await run(["--url", origin, "--network", "polygon"]),
      await run(["--url", origin, "--cases", "insuficient_funds"]),
      await run(["--pay-to", "0x12", "--api-key", "two words"], { PAYER_PRIVATE_KEY: "0xsecret" }),
    ];
    expect(told.map(({ output }) => output.split("\n")[0])).toEqual([
      "x402-kit conformance: Nothing answers at http://127.0.0.1:PORT",
      "x402-kit conformance: What answers at http://127.0.0.1:PORT is not an x402 facilitator",
      'x402-kit conformance: The facilitator at http://127.0.0.1:PORT lists no payments by scheme "exact" on polygon',
      "x402-kit conformance: one thing is wrong",
      "x402-kit conformance: 3 things are wrong",
    ]);
    expect(told.at(-1)?.output).not.toContain("0xsecret");
    expect(told.map(({ code }) => code)).toEqual([3, 3, 3, 4, 4]);
  });
});
