import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAbi } from "viem";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readNetworkData } from "../../../src/config/network-file.ts";
import { createFixtureEngine } from "../../../src/fixtures/index.ts";
import { connectHarness, createHarness } from "../../../src/harness/index.ts";
import { buildPaymentRequest } from "../../../src/methods/exact-eip3009/eip3009-method.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { startCli } from "../../support/cli.ts";
import { judge, subject } from "../../support/judge/judge.ts";
import { accountOf, keyOf } from "../../support/key-accounts.ts";
import { startRealChain } from "../../support/real-chain.ts";
import { runHere } from "../../support/run-here.ts";
import { makeDirectory, startCommand } from "../../support/serve/command.ts";
import { type DeployedChains, operator, startDeployedChains } from "../../support/serve/deployed-chains.ts";
import { signAs } from "../../support/sign-as.ts";

/*
 * A chain that is not built in, given as data: whatever works on the five works on it.
 */

const avalanche = {
  name: "avalanche",
  caip2: "eip155:43114",
  tier: "mainnet",
  token: {
    address: "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E",
    name: "USD Coin",
    version: "2",
    // Not those of USDC, so that nothing takes six for granted.
    decimals: 18,
  },
  confirmations: 1,
  blockTimeMs: 2_000,
  maxFeeGwei: "100",
  nativeCoin: "AVAX",
} as const;

let directory: Awaited<ReturnType<typeof makeDirectory>>;
let file: string;

beforeAll(async () => {
  directory = await makeDirectory();
  file = join(directory.path, "networks.json");
  await writeFile(file, JSON.stringify(avalanche));
});
afterAll(() => directory[Symbol.asyncDispose]());

test("the harness starts it beside a built-in one, and it is paid on in both versions", async () => {
  await using harness = await createHarness({ networkFile: file, networks: ["avalanche", "base"] });
  const { client, caip2, facilitatorContract } = harness.networks.avalanche;
  expect(await client.getChainId()).toBe(43_114);
  expect([caip2, client.chain.nativeCurrency.symbol]).toEqual(["eip155:43114", "AVAX"]);
  expect(facilitatorContract.address).toBe(harness.networks.base.facilitatorContract.address);

  for (const x402Version of [1, 2] as const) {
    const { settle, receipt } = await harness.pay({ network: "avalanche", x402Version });
    expect(settle.body).toMatchObject({ success: true, network: x402Version === 1 ? "avalanche" : caip2 });
    expect(receipt?.status).toBe("success");
  }
  const { settle } = await harness.pay({ network: "avalanche", payer: "empty" });
  expect(settle.body).toMatchObject({ success: false, errorReason: "insufficient_funds" });

  await using other = await connectHarness(harness.facilitator.url, ["avalanche"]);
  await using _late = await other.faults.on("avalanche").delay(1);
  await other.networks.avalanche.advanceTime(60);
  await other.reset();
  expect((await other.pay({ network: "avalanche" })).settle.status).toBe(200);
});

test("it is forked like any other, with its own token", async () => {
  const network = readNetworkData(avalanche).named("avalanche");
  if (network === undefined) throw new Error("avalanche is missing");
  const real = await startRealChain(network);
  try {
    await using harness = await createHarness({
      networkFile: avalanche,
      networks: ["avalanche"],
      fork: { avalanche: real.node.rpcUrl },
    });
    expect(await harness.networks.avalanche.balanceOf(real.holder)).toBe(real.held);
    expect((await harness.pay({ network: "avalanche" })).settle.body).toMatchObject({ success: true });
  } finally {
    await real.stop();
  }
});

test("the fixtures answer for it as the service does", async () => {
  const fixtures = createFixtureEngine({
    addedNetworks: readNetworkData(avalanche).all,
    networks: ["avalanche"],
  });
  const [network] = fixtures.environment.networks;
  const payment = await signAs("funded", {
    asset: network.usdc,
    chainId: network.chainId,
    to: network.facilitatorContract,
    value: 10_000n,
    validBefore: BigInt(Math.floor(Date.now() / 1000)) + 600n,
  });
  const body = buildPaymentRequest({
    x402Version: 2,
    network,
    asset: network.usdc,
    payTo: network.facilitatorContract,
    amount: 10_000n,
    resource: "https://merchant.example/resource",
    ...payment,
  });
  const answer = await fixtures.reply({
    method: "POST",
    path: "/v1/verify",
    headers: { authorization: fixtures.environment.keys.local.apiKey, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(answer).toMatchObject({ status: 200, body: { isValid: true } });
});

/** The two ways to name the file to a command. */
const ways = [
  { how: "--network-file", args: () => ["--network-file", file], variables: () => ({}) },
  { how: "NETWORKS_FILE", args: () => [], variables: () => ({ NETWORKS_FILE: file }) },
] as const;

test.each(ways)("`mock` answers for it, by $how", async ({ args, variables }) => {
  const mock = ["mock", "--networks", "avalanche", "--port", "0", "--json", ...args()];
  await using running = startCommand(mock, variables(), directory.path);
  const { facilitator } = JSON.parse(await running.printed(/^\{.*\}$/));
  expect((await requestJson(`${facilitator.url}/supported`, { method: "GET" })).body).toMatchObject({
    kinds: ["avalanche", "eip155:43114", "eip155:43114", "eip155:43114"].map((network) => ({ network })),
  });
});

test("`up` starts it, commands act on it, and the studio explains its payments", async () => {
  const cli = await startCli([
    "up",
    "--network-file",
    file,
    "--networks",
    "avalanche",
    "--port",
    "0",
    "--json",
  ]);
  try {
    const [line] = await cli.printed(/^\{.*\}$/m);
    const { facilitator, networks } = JSON.parse(line);
    expect(networks.avalanche).toMatchObject({ chainId: 43_114, asset: avalanche.token, nativeCoin: "AVAX" });
    const options = ["--network", "avalanche", "--network-file", file, "--url", facilitator.url];
    expect(
      await runHere(["fund", ...options, "--to", accountOf("a buyer").address, "--amount", "5"], {}),
    ).toMatchObject({ code: 0 });
    expect(await runHere(["pay", ...options, "--payer", "empty"], {})).toMatchObject({ code: 1 });

    const { body } = await requestJson(facilitator.url.replace("/v1", "/payments"), { method: "GET" });
    const { payments } = body as { payments: { id: string; network: string; token: object }[] };
    expect(payments.map(({ network }) => network)).toEqual(["avalanche", "avalanche"]);
    expect(payments.map(({ token }) => token)).toEqual(Array(2).fill({ symbol: "USDC", decimals: 18 }));
    const id = payments[0]?.id;
    const detail = await requestJson(facilitator.url.replace("/v1", `/payments/${id}`), { method: "GET" });
    expect(JSON.stringify(detail.body)).not.toContain("unknown-network");

    // The token on the chain has the decimals, and test payers hold as many whole tokens as elsewhere.
    const harness = await connectHarness(facilitator.url, ["avalanche"]);
    const { asset, balanceOf, client } = harness.networks.avalanche;
    const abi = parseAbi(["function decimals() view returns (uint8)"]);
    expect(await client.readContract({ address: asset.address, abi, functionName: "decimals" })).toBe(18);
    expect(await balanceOf(testPayers.funded.address)).toBeGreaterThanOrEqual(10n ** 23n);
    await harness.reset();

    // Against what runs, no file is needed.
    const { code, stdout } = await runHere(
      ["conformance", "--url", facilitator.url, "--cases", "settle", "--json", "--parallel", "8"],
      {},
    );
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { network: "avalanche", failed: 0 }]);
  } finally {
    await cli[Symbol.asyncDispose]();
  }
});

test("amounts of a token of another name and other decimals are told in its own units everywhere", async () => {
  const token = { ...avalanche.token, name: "Swiss Stable", symbol: "XCHF", version: "1" };
  const other = join(directory.path, "franc.json");
  await writeFile(other, JSON.stringify({ ...avalanche, token }));
  const up = ["up", "--network-file", other, "--networks", "avalanche", "--port", "0", "--json"];
  await using cli = await startCli([...up, "--journal", "--log-format", "text"]);
  const [line] = await cli.printed(/^\{.*\}$/m);
  const { facilitator, networks } = JSON.parse(line);
  expect(networks.avalanche.asset).toEqual(token);
  const at = ["--network", "avalanche", "--network-file", other, "--url", facilitator.url];

  const fund = [
    "fund",
    ...at,
    "--to",
    accountOf("a buyer").address,
    "--amount",
    `${25n * 10n ** 17n}`,
    "--units",
  ];
  expect((await runHere(fund, {})).stdout).toContain("has 2.5 XCHF more on avalanche");
  const paid = await runHere(["pay", ...at, "--amount", "1.5"], {});
  expect(paid.stdout).toMatch(/^Settled 1\.5 XCHF on avalanche in \d+ ms\.$/m);
  await cli.printed(/ settle +avalanche +funded +1\.5 XCHF +settled /);
  // Refused for the balance alone: nothing is wrong with what was signed.
  await runHere(["pay", ...at, "--payer", "empty", "--amount", "0.5"], {});
  const why = await runHere(["why", "--url", facilitator.url.replace("/v1", "")], {});
  expect(why.stdout).toContain("0.5 XCHF on avalanche from empty");
  expect(why.stdout).toContain("errors#insufficient_funds");
  expect(why.stdout).not.toMatch(/another (key|domain)/);
  expect(why.stdout.replaceAll(/\s+/g, " ")).toContain("1 XCHF is 1000000000000000000");

  const harness = await connectHarness(facilitator.url, ["avalanche"]);
  expect(await harness.journal.describe()).toContain(`of 1.5 XCHF (${15n * 10n ** 17n} units of 0x`);
  const abi = parseAbi(["function symbol() view returns (string)"]);
  const { client, asset } = harness.networks.avalanche;
  expect(await client.readContract({ address: asset.address, abi, functionName: "symbol" })).toBe("XCHF");

  const request = await harness.sign({ network: "avalanche", amount: 2n * 10n ** 18n });
  const asked = { ...Object(request.paymentRequirements), amount: "2" };
  const body = JSON.stringify({ ...request, paymentRequirements: asked });
  const explained = await runHere(["explain", body, "--network-file", other], {});
  expect(explained.stdout).toContain(`2 XCHF (${2n * 10n ** 18n})`);
  expect(explained.stdout).toContain(`not at all: 1 XCHF is ${10n ** 18n}.`);
});

test("clients and shops are judged on it", async () => {
  const where = ["--network-file", file, "--cases", "underpaid,two-routes"];
  const shop = await judge("shop", subject("shop", "good"), "--network", "avalanche", ...where);
  expect(shop.verdicts).toEqual({ plain: "good", underpaid: "good", "two-routes": "good" });
  const client = await judge(
    "client",
    subject("buyer", "signs-anew"),
    ...["--network", "avalanche", "--network-file", file, "--cases", "shop-answer-lost"],
  );
  expect(client.verdicts).toEqual({
    plain: "paid_once_served",
    "shop-answer-lost": "paid_twice",
  });
  expect(client.findings.find(({ name }) => name === "plain")?.transfers).toEqual([
    { amount: `${10n ** 16n}` },
  ]);
});

test("a bad file is one sentence with its field", async () => {
  const bad = join(directory.path, "bad.json");
  await writeFile(bad, JSON.stringify({ ...avalanche, confirmations: 0 }));
  const { code, stderr } = await runHere(["up", "--network-file", bad, "--networks", "avalanche"], {});
  expect(code).toBe(2);
  expect(stderr).toContain(
    `--network-file: names the file ${bad}; confirmations: must be a whole number from 1 to 1000`,
  );
});

describe("in production", () => {
  let deployed: DeployedChains<"avalanche">;
  let key: string;
  beforeAll(async () => {
    deployed = await startDeployedChains(["avalanche"], file);
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await runHere(args, { ...deployed.variables });
      if (code !== 0) throw new Error(stderr);
      return stdout;
    };
    await run("org", "create", "--name", "Shop", "--id", "shop");
    const wallet = accountOf("the wallet of the shop").address;
    await run("org", "set-recipient", "--id", "shop", "--network", "avalanche", "--address", wallet);
    key = /x4k_\w+_\w+/.exec(await run("key", "create", "--org", "shop"))?.[0] ?? "";
  });
  afterAll(() => deployed.stop());

  test("`org set-recipient` refuses its token as a wallet", async () => {
    const { token } = avalanche;
    const args = [
      "org",
      "set-recipient",
      "--id",
      "shop",
      "--network",
      "avalanche",
      "--address",
      token.address,
    ];
    const { stderr } = await runHere(args, { ...deployed.variables });
    expect(stderr).toContain('is the token "USD Coin" on avalanche, and not a wallet');
  });

  test("`network` reads the file from the chain", async () => {
    const args = ["network", "--name", "avalanche", "--token", avalanche.token.address, "--tier", "mainnet"];
    const { AVALANCHE_RPC_URL = "" } = deployed.variables;
    const { stdout, code } = await runHere([...args, "--native-coin", "AVAX"], { AVALANCHE_RPC_URL });
    const read = JSON.parse(stdout);
    expect([code, read]).toMatchObject([
      0,
      {
        ...avalanche,
        confirmations: 12,
        blockTimeMs: expect.any(Number),
        maxFeeGwei: expect.stringMatching(/^\d+$/),
      },
    ]);
    expect(readNetworkData(read).names).toContain("avalanche");

    const noToken = args.with(4, operator);
    expect((await runHere(noToken, { AVALANCHE_RPC_URL })).stderr).toContain(
      `There is no EIP-3009 token at ${operator} on chain 43114`,
    );
    expect((await runHere(args, {})).stderr).toContain("AVALANCHE_RPC_URL: is needed");
    const silent = { AVALANCHE_RPC_URL: "http://127.0.0.1:9/secret" };
    expect((await runHere(args, silent)).stderr).not.toContain("secret");
  });

  describe.each(ways)("by $how", ({ args, variables: named }) => {
    const variables = () => ({
      ...Object.fromEntries(Object.entries(deployed.variables).filter(([name]) => name !== "NETWORKS_FILE")),
      ...named(),
    });

    test("`deploy` finds the contract that it has deployed on it", async () => {
      const deploy = ["deploy", "--network", "avalanche", "--dry-run", "--json", ...args()];
      const { code, stdout } = await runHere(deploy, {
        ...variables(),
        DEPLOYER_PRIVATE_KEY: keyOf("deployer"),
      });
      expect([code, JSON.parse(stdout)]).toMatchObject([
        0,
        { network: "avalanche", contract: deployed.contract },
      ]);
    });

    test("`doctor` asks the chain about it", async () => {
      const { code, stdout } = await runHere(["doctor", "--json", ...args()], variables());
      expect(code).toBe(0);
      expect(stdout).toContain("avalanche");
    });
  });

  test("`doctor` compares it with the chain, and finds a token of another domain", async () => {
    const good = await runHere(["doctor"], { ...deployed.variables });
    expect(good.stdout).toContain('signs for name "USD Coin", version "2"');
    expect(good.code).toBe(0);

    const six = join(directory.path, "six.json");
    await writeFile(six, JSON.stringify({ ...avalanche, token: { ...avalanche.token, decimals: 6 } }));
    const warned = await runHere(["doctor", "--network-file", six], { ...deployed.variables });
    expect(warned.stdout).toContain("but has 18 decimals, not 6 as configured");

    const wrong = join(directory.path, "wrong.json");
    await writeFile(wrong, JSON.stringify({ ...avalanche, token: { ...avalanche.token, name: "USDC" } }));
    const bad = await runHere(["doctor", "--network-file", wrong], { ...deployed.variables });
    expect(bad.code).toBe(1);
    expect(bad.stdout).toContain('signs for another domain than name "USDC", version "2"');
  });

  test("`serve` settles on it", async () => {
    const { NETWORKS_FILE = "", ...variables } = deployed.variables;
    const named = ["serve", "--network-file", NETWORKS_FILE];
    await using serve = startCommand(named, variables, directory.path);
    const { url } = JSON.parse(await serve.logged(/"serving"/));
    const { chains, contract } = deployed;
    const payment = await signAs("funded", {
      asset: avalanche.token,
      chainId: 43_114,
      to: contract,
      value: 10_000n,
      validBefore: (await chains.avalanche.now()) + 600n,
    });
    const body = buildPaymentRequest({
      x402Version: 2,
      network: avalanche,
      asset: avalanche.token,
      payTo: contract,
      amount: 10_000n,
      resource: "https://merchant.example/resource",
      ...payment,
    });
    const headers = { authorization: key };
    expect((await requestJson(`${url}/supported`, { method: "GET" })).body).toMatchObject({
      kinds: ["avalanche", "eip155:43114", "eip155:43114", "eip155:43114"].map((network) => ({ network })),
    });
    expect((await requestJson(`${url}/settle`, { method: "POST", headers, body })).body).toMatchObject({
      success: true,
      network: "eip155:43114",
    });
    serve.kill("SIGTERM");
    expect((await serve.ended).code).toBe(0);
  });
});
