import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import {
  type HarnessDescription,
  harnessDescriptionSchema,
} from "../../../src/harness/control/description.ts";
import { pay } from "../../../src/harness/control/pay.ts";
import {
  type AuthorizationSigner,
  signAuthorization,
} from "../../../src/methods/exact-eip3009/authorization.ts";
import { buildPaymentRequest } from "../../../src/methods/exact-eip3009/eip3009-method.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { localTokens } from "../../../src/payer/local-chains.ts";
import { createPayerSigner } from "../../../src/payer/sign-as.ts";
import { localOrganization } from "../../../src/payer/test-keys.ts";
import { type TestPayer, testPayers } from "../../../src/payer/test-payers.ts";
import { type BuiltInNetworkName, networkNames, networks } from "../../../src/protocol/networks.ts";
import { requestJson, sendHttp } from "../../../src/util/http-client.ts";
import { type CliProcess, repository, runCli, startCli } from "../../support/cli.ts";
import { runHere } from "../../support/run-here.ts";

/*
 * `x402-kit up` as a process, and `pay` and `fund` against it: what they print, and that what is printed works.
 */

const run = promisify(execFile);

/** The JSON that a started `up --json` has printed. */
async function describedBy(up: CliProcess): Promise<HarnessDescription> {
  const [line] = await up.printed(/^.+\n/);
  return harnessDescriptionSchema.parse(JSON.parse(line));
}

/** Pays with nothing but what `up --json` prints, and gives what settle answers. */
async function payBy(
  { facilitator, organization, networks: running }: HarnessDescription,
  network: BuiltInNetworkName,
  payer: AuthorizationSigner,
): Promise<unknown> {
  const chain = running[network];
  if (chain === undefined) throw new Error(`${network} is not running`);
  const { asset, chainId, facilitatorContract: payTo } = chain;
  const { authorization, signature } = await signAuthorization(payer, {
    asset,
    chainId,
    to: payTo,
    value: 2_500n,
    validBefore: BigInt(Math.floor(Date.now() / 1_000) + 60),
  });
  const body = buildPaymentRequest({
    x402Version: 1,
    network: networks[network],
    asset,
    payTo,
    amount: 2_500n,
    resource: "https://merchant.example/report",
    authorization,
    signature,
  });
  const headers = { authorization: organization.apiKey };
  return (await requestJson(`${facilitator.url}/settle`, { method: "POST", headers, body })).body;
}

/** How many transactions the operator has sent on a network. */
function settlesSent(
  { networks: running }: HarnessDescription,
  network: BuiltInNetworkName,
): Promise<unknown> {
  const rpc = createLocalRpc(running[network]?.rpcUrl ?? "");
  return rpc.request("eth_getTransactionCount", harnessAccounts.operator.address, "latest");
}

describe("up --json", () => {
  test("prints one line of the documented shape and nothing else, and a payment with the printed keys settles", async () => {
    await using up = await startCli(["up", "--port", "0", "--json"]);
    const description = await describedBy(up);

    const address = expect.stringMatching(/^0x[0-9a-fA-F]{40}$/);
    const privateKey = expect.stringMatching(/^0x[0-9a-f]{64}$/);
    expect(JSON.parse(up.stdout())).toEqual({
      facilitator: { url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/v1$/) },
      organization: { id: "org_local", apiKey: expect.stringMatching(/^x4k_/), recipient: address },
      payers: Object.fromEntries(Object.keys(testPayers).map((name) => [name, { address, privateKey }])),
      networks: Object.fromEntries(
        networkNames.map((name) => [
          name,
          {
            chainId: networks[name].chainId,
            caip2: networks[name].caip2,
            rpcUrl: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
            facilitatorContract: address,
            payTo: address,
            asset: networks[name].usdc,
            tokens: localTokens,
          },
        ]),
      ),
    });

    for (const name of networkNames) expect(await settlesSent(description, name)).toBe("0x1");

    const { funded } = description.payers;
    if (funded === undefined) throw new Error("the payer funded is missing");
    expect(await payBy(description, "polygon", createPayerSigner(funded.privateKey))).toMatchObject({
      success: true,
      network: "polygon",
      payer: funded.address,
    });

    up.kill("SIGINT");
    expect(await up.ended).toEqual({ code: 0, signal: null });
    expect(up.stdout().split("\n")).toEqual([expect.stringMatching(/^\{/), ""]);
    expect(up.stderr()).toBe("");
  });

  test("two at once do not disturb each other, run the networks asked for, and pay nothing without being asked to", async () => {
    const args = ["up", "--port", "0", "--json", "--no-demo", "--networks", "base,polygon"];
    await using one = await startCli(args);
    await using other = await startCli(args);
    for (const up of [one, other]) {
      const description = await describedBy(up);
      expect(Object.keys(description.networks)).toEqual(["base", "polygon"]);
      expect(await settlesSent(description, "base")).toBe("0x0");
      expect(await payBy(description, "base", createPayerSigner(testPayers.funded.privateKey))).toMatchObject(
        {
          success: true,
        },
      );
    }
  });

  test("the contract stands at the configured addresses, and payments go there", async () => {
    const mainnet = "0xC0FFEE0000000000000000000000000000004020";
    const testnet = "0xC0FFEE0000000000000000000000000000004021";
    await using up = await startCli(["up", "--port", "0", "--json", "--networks", "base,base-sepolia"], {
      FACILITATOR_CONTRACT_MAINNET: mainnet,
      FACILITATOR_CONTRACT_TESTNET: testnet,
    });
    const description = await describedBy(up);
    for (const [network, contract] of [
      ["base", mainnet],
      ["base-sepolia", testnet],
    ] as const) {
      expect(description.networks[network]?.facilitatorContract.toLowerCase()).toBe(contract.toLowerCase());
      const report = await pay(description, {
        network,
        payer: "funded",
        amount: 10n,
        x402Version: 2,
        validForSeconds: 60,
      });
      expect(report).toMatchObject({
        verify: { body: { isValid: true } },
        settle: { body: { success: true } },
      });
      const { transaction } = report.settle.body as { transaction: string };
      const rpc = createLocalRpc(description.networks[network]?.rpcUrl ?? "");
      expect(await rpc.request("eth_getTransactionReceipt", transaction)).toMatchObject({
        status: "0x1",
        to: contract.toLowerCase(),
      });
    }
  });
});

describe("up for a person", () => {
  let up: CliProcess;
  let report: string;
  let url: string;
  beforeAll(async () => {
    up = await startCli(["up", "--port", "0"]);
    await up.printed(/Ctrl-C stops everything\.\n/);
    report = up.stdout();
    url = /http:\S+\/v1/.exec(report)?.[0] ?? "";
  });
  afterAll(() => up?.[Symbol.asyncDispose]());

  test.each(networkNames)("shows what it has paid on %s, and where", (name) => {
    const { chainId } = networks[name];
    const hash = "0x[0-9a-f]{6}…[0-9a-f]{4}";
    const row = `^${name} +${chainId} +http://127\\.0\\.0\\.1:\\d+ .* ${hash} +\\d+ ms$`;
    expect(report).toMatch(new RegExp(row, "m"));
  });

  test("has at most 30 lines, and no colours where it is no terminal", () => {
    expect(report.trim().split("\n").length).toBeLessThanOrEqual(30);
    expect(JSON.stringify(report)).not.toMatch(/\\u001b|[\u{f0000}-\u{f00ff}]/u);
  });

  test("has the keys of every test payer behind a command, with what becomes of their payments", async () => {
    const { stdout } = await runHere(["payers"]);
    for (const [name, payer] of Object.entries<TestPayer>(testPayers)) {
      const { address, privateKey, outcome, settleOutcome = outcome } = payer;
      expect(stdout).toMatch(new RegExp(`^${name} +.*${settleOutcome}$`, "m"));
      expect(stdout).toContain(`\n${name}: ${address}\n  key ${privateKey}\n`);
    }
  });

  test("goes on with lines for a shop that connects, and for what is done to it from elsewhere", async () => {
    await sendHttp(`${url}/supported`);
    const origin = url.replace("/v1", "");
    const account = privateKeyToAccount(generatePrivateKey()).address;
    await runHere(["fund", "--network", "base", "--to", account, "--amount", "0.5", "--url", origin]);
    await runHere(["fault", "polygon", "answer-lost", "--url", origin]);
    await runHere(["fault", "clear", "--url", origin]);
    for (const line of [
      /^\d\d:\d\d:\d\d shop +shop connected \(GET \/supported\)$/m,
      /^\d\d:\d\d:\d\d fund +base: 500000 of the smallest unit to 0x/m,
      /^\d\d:\d\d:\d\d fault +polygon: \S+ is set/m,
      /^\d\d:\d\d:\d\d fault +all were ended/m,
    ]) {
      await up.printed(line);
    }
  });

  test("fits a terminal of 80 columns, but for what is there to be pasted", () => {
    const pasted = /^(npx |curl |A .env |Facilitator |API key |payTo |Studio | {13} 0x)/;
    const lines = report.split("\n").filter((line) => !pasted.test(line));
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
  });

  test("gives commands that reach it", () => {
    const origin = url.replace("/v1", "");
    expect(report).toContain(
      `\nnpx --no-install x402-kit pay --network base --payer empty --url ${origin}\n`,
    );
    expect(report).toContain(`\nnpx --no-install x402-kit why --url ${origin}\n`);
  });

  test("prints its .env by the command that it names, from another terminal", async () => {
    const [, args = ""] =
      /^A \.env of .*: npx --no-install x402-kit (up --env --port \d+)$/m.exec(report) ?? [];
    const { code, stdout, stderr } = await runHere(args.split(" "));
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: `Of the x402-kit up that runs at ${url.replace("/v1", "")}:\n`,
    });
    expect(stdout).toMatch(/^([A-Z0-9_]+=\S+\n)+$/);
    expect(stdout).toContain(`X402_FACILITATOR_URL=${url}\nX402_API_KEY=${localOrganization.apiKey}\n`);
    for (const [, node = ""] of report.matchAll(/ (http:\S+:\d+) .*ms$/gm)) expect(stdout).toContain(node);
  });

  test("says where it is, its key and payTo, and last how long it took", () => {
    expect(report).toMatch(/^Facilitator {3}http:\S+ .*\nAPI key {7}x4k_\S+\npayTo {9}0x\S+ {3}base, /m);
    expect(report).toMatch(/\nReady in \d+\.\d\d s\. Ctrl-C stops everything\.\n/);
  });

  // The stand-in comes last where the machine has a curl of its own, and first to be tried everywhere.
  const standIn = [join(repository, "test/support/bin"), dirname(process.execPath)].join(delimiter);
  const machine = process.env.PATH ?? "";
  test.each([
    ["this machine's curl", `${machine}${delimiter}${standIn}`],
    ["the stand-in for it", `${standIn}${delimiter}${machine}`],
  ])("the printed curl works when pasted: %s", async (_, path) => {
    const printed = /^curl .*$/m.exec(report)?.[0] ?? "";
    const paste = async (text: string) => {
      const { stdout } = await run("/bin/sh", ["-c", text], { env: { PATH: path } });
      return JSON.parse(stdout) as unknown;
    };
    expect(await paste(printed)).toMatchObject({ kinds: expect.arrayContaining([]) });
  });

  test.each([
    ["v2 by default", []],
    ["v1", ["--version", "1", "--network", "optimism-sepolia"]],
    ["by the names of v2", ["--network", "eip155:137", "--amount", "0.02"]],
    ["a smart wallet's", ["--payer", "smartWallet", "--amount", "1", "--units"]],
  ])("pay prints both answers, and that it settled: %s", async (_, args) => {
    const { code, stdout, stderr } = await runHere(["pay", "--url", url, ...args]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^verify {2}200 {2}\{\n.*"isValid": true/s);
    expect(stdout).toMatch(/^settle {2}200 {2}\{\n.*"transaction": "0x[0-9a-f]{64}"/ms);
    expect(stdout).toMatch(/^Settled 0\.0\d+ USDC on \S+ in \d+ ms\.$/m);
  });

  test("pay with a payer that cannot pay prints both answers, and exits with 1", async () => {
    const { code, stdout } = await runHere(["pay", "--payer", "empty"], { X402_KIT_URL: url });
    expect(code).toBe(1);
    const [, verified = "", settled = ""] =
      /^verify {2}200 {2}(\{.*\n\})\nsettle {2}200 {2}(\{.*\n\})\n/s.exec(stdout) ?? [];
    const refused = { situation: "balance_too_small", nextAction: "give_up", paymentState: "not_taken" };
    expect(JSON.parse(verified)).toMatchObject({ isValid: false, ...refused });
    expect(JSON.parse(settled)).toMatchObject({ success: false, transaction: "", ...refused });
    expect(stdout).toMatch(/^Not settled: 0\.01 USDC on base in \d+ ms\.$/m);
    expect(stdout).toContain(`npx --no-install x402-kit why --url ${new URL(url).origin}\n`);
  });

  test("fund lets a new wallet pay", async () => {
    const wallet = privateKeyToAccount(generatePrivateKey());
    const args = [
      "fund",
      "--url",
      url,
      "--network",
      "base",
      "--to",
      wallet.address,
      "--amount",
      "2500",
      "--units",
    ];
    const description = harnessDescriptionSchema.parse(
      (await requestJson(url.replace("/v1", "/harness"))).body,
    );
    expect(await payBy(description, "base", wallet)).toMatchObject({ errorReason: "insufficient_funds" });
    expect(await runHere(args)).toMatchObject({
      code: 0,
      stdout: `${wallet.address} has 0.0025 USDC more on base (2500 of its smallest unit).\n`,
      stderr: "",
    });
    expect(await payBy(description, "base", wallet)).toMatchObject({ success: true, payer: wallet.address });
  });

  test("approve lets a wallet pay by Permit2, and 0 withdraws it", async () => {
    const { address } = testPayers.unapproved;
    const pay = (...args: string[]) =>
      runHere([
        "pay",
        "--url",
        url,
        "--network",
        "base",
        "--payer",
        "unapproved",
        "--upto",
        "0.005",
        ...args,
      ]);
    const approve = (...args: string[]) =>
      runHere(["approve", "--url", url, "--network", "base", "--account", address, ...args]);
    expect((await pay()).stdout).toContain('"errorReason": "permit2_allowance_required"');
    expect(await approve()).toMatchObject({
      ...{ code: 0, stderr: "" },
      stdout: `Permit2 may take all USDC of ${address} on base.\n`,
    });
    expect((await pay()).stdout).toContain("Settled 0.005 USDC on base");
    expect((await pay("--amount", "$0.001858")).stdout).toContain("Settled 0.001858 USDC on base");
    expect((await runHere(["why", "--url", url])).stdout).toContain(
      "0.001858 USDC of at most 0.005 USDC on base",
    );
    expect((await approve("--amount", "1.5")).stdout).toBe(
      `Permit2 may take 1.5 USDC of ${address} on base.\n`,
    );
    expect((await approve("--amount", "0")).stdout).toBe(`Permit2 may take 0 USDC of ${address} on base.\n`);
    expect((await pay()).stdout).toContain('"errorReason": "permit2_allowance_required"');
  });

  test("pay, fund and approve take the other tokens by name", async () => {
    const wallet = privateKeyToAccount(generatePrivateKey());
    const at = ["--url", url, "--network", "base"];
    for (const asset of ["plain", "usdt", "permit"]) {
      const end = await runHere(["pay", ...at, "--asset", asset]);
      expect(end).toMatchObject({ code: 0, stdout: expect.stringContaining("\nSettled 0.01 ") });
    }
    const refused = await runHere(["pay", ...at, "--asset", "fee"]);
    expect(refused).toMatchObject({
      ...{ code: 1, stdout: expect.stringContaining("it keeps a fee of each transfer") },
    });
    const { address } = wallet;
    const fund = ["fund", ...at, "--asset", "plain", "--to", address, "--amount", "1.5"];
    expect((await runHere(fund)).stdout).toBe(
      `${address} has 1.5 PLAIN more on base (1500000 of its smallest unit).\n`,
    );
    const approve = ["approve", ...at, "--asset", "plain", "--account", address];
    expect((await runHere(approve)).stdout).toBe(`Permit2 may take all PLAIN of ${address} on base.\n`);
    const wrong = await runHere(["fund", ...at, "--asset", "dai", "--to", address, "--amount", "1.5"]);
    expect(wrong.stderr).toContain("plain, fee, usdt, permit");
  });

  test("pay sends an approval along with a payment by Permit2 alone", async () => {
    const args = ["pay", "--url", url, "--network", "base", "--method", "eip3009", "--approval"];
    expect(await runHere(args)).toMatchObject({
      ...{ code: 1, stdout: "" },
      stderr: expect.stringContaining("need no approval"),
    });
  });

  test("fund and approve take test payers by name", async () => {
    const at = ["--url", url, "--network", "base"];
    const { address } = testPayers.unapproved;
    expect((await runHere(["fund", ...at, "--to", "unapproved", "--amount", "1.5"])).stdout).toContain(
      `${address} has 1.5 USDC more on base`,
    );
    expect((await runHere(["approve", ...at, "--account", "unapproved", "--amount", "0"])).stdout).toBe(
      `Permit2 may take 0 USDC of ${address} on base.\n`,
    );
  });

  test("fund of more than there can be says so", async () => {
    const { recipient } = localOrganization;
    const amount = (2n ** 256n - 1n).toString();
    const end = await runHere([
      "fund",
      "--url",
      url,
      "--network",
      "base",
      "--to",
      recipient,
      "--amount",
      amount,
      "--units",
    ]);
    expect(end).toMatchObject({ code: 1, stdout: "" });
    expect(end.stderr).toBe(
      `x402-kit fund: ${[
        `${recipient} cannot be given ${amount} more of the asset on base`,
        "  because: The node refused eth_call: execution reverted: SafeMath: addition overflow",
        "",
      ].join("\n")}`,
    );
  });

  test("advance-time moves one chain, and reset puts everything back", async () => {
    const at = ["--url", url];
    const advanced = await runHere(["advance-time", ...at, "--network", "polygon", "--seconds", "86400"]);
    expect(advanced).toMatchObject({ code: 0, stderr: "" });
    const [, time = ""] = /^On polygon it is (\S+Z)\.\n$/.exec(advanced.stdout) ?? [];
    expect(Math.abs(Date.parse(time) - Date.now() - 86_400_000)).toBeLessThan(10_000);

    const description = harnessDescriptionSchema.parse(
      (await requestJson(url.replace("/v1", "/harness"))).body,
    );
    expect(await settlesSent(description, "polygon")).not.toBe("0x0");
    expect(await runHere(["reset", ...at])).toMatchObject({
      code: 0,
      stdout:
        "base, base-sepolia, optimism, optimism-sepolia, polygon and the facilitator are as they were at the start.\n",
      stderr: "",
    });
    for (const name of networkNames) expect(await settlesSent(description, name)).toBe("0x0");
    expect((await runHere(["pay", ...at, "--network", "polygon"])).code).toBe(0);
  });
});

test("up needs no temporary folder", async () => {
  await using up = await startCli(["up", "--port", "0", "--no-demo", "--networks", "base"], {
    TMPDIR: "/nonexistent",
  });
  await up.printed(/Ctrl-C stops everything\.\n/);
  expect(up.stderr()).toBe("");
});

test("up that other machines can reach warns of it, and its nodes can be reached there too", async () => {
  await using up = await startCli([
    "up",
    "--port",
    "0",
    "--host",
    "0.0.0.0",
    "--no-demo",
    "--networks",
    "base",
  ]);
  await up.printed(/Ctrl-C stops everything\.\n/);
  expect(up.stderr()).toBe(
    "Warning: with --host 0.0.0.0 everyone who reaches this machine can pay, fund and reset, and call the nodes: all keys are published.\n",
  );
  const [, port] = up.stdout().match(/http:\/\/127\.0\.0\.1:(\d+)\s/) ?? [];
  const call = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] });
  const headers = { "content-type": "application/json" };
  // Another address of the loopback interface, which what listens on 127.0.0.1 alone does not answer.
  const answer = await fetch(`http://127.0.0.2:${port}`, { method: "POST", headers, body: call });
  expect(await answer.json()).toMatchObject({ result: "0x2105" });
});

describe("up that cannot listen", () => {
  test.each([
    {
      where: "on a port in use",
      host: "127.0.0.1",
      says: [
        "x402-kit up: Port PORT on 127.0.0.1 is in use",
        "  Stop what listens there; if it is x402-kit up, use it as it is.",
        "  Choose another by --port or PORT (in a program, by the option port); 0 is any free one.",
      ],
    },
    {
      where: "at the address of another machine",
      host: "192.0.2.1",
      says: [
        "x402-kit up: 192.0.2.1 is not an address of this machine",
        "  Leave the host out to listen on 127.0.0.1; 0.0.0.0 is every address.",
      ],
    },
  ])("says so and what to do, and starts nothing: $where", async ({ host, says }) => {
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    const { port } = other.address() as { port: number };
    try {
      const end = await runCli(["up", "--host", host, "--port", String(port)]);
      expect(end).toMatchObject({ code: 1, stdout: "", started: 0 });
      expect(end.stderr.replaceAll(String(port), "PORT")).toBe(`${says.join("\n")}\n`);
    } finally {
      other.close();
    }
  });
});
