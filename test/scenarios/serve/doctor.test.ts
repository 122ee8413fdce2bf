import { randomBytes, randomUUID } from "node:crypto";
import { copyFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kysely } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNode } from "../../../src/harness/nodes/nodes.ts";
import { createLedger } from "../../../src/ledger/create-ledger.ts";
import { openDatabase } from "../../../src/ledger/database/open-database.ts";
import {
  batchSettlementAddress,
  multicall3Address,
  permit2CollectorAddress,
} from "../../../src/methods/batch-settlement/contracts.ts";
import { permit2Address, uptoProxyAddress } from "../../../src/methods/permit2/permit.ts";
import { harnessAccounts } from "../../../src/payer/accounts.ts";
import { addressWord, type Hex, keccak256Text } from "../../../src/protocol/hex.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { accountOf, keyOf } from "../../support/key-accounts.ts";
import { altering } from "../../support/misbehaviour.ts";
import { type Outcome, runHere } from "../../support/run-here.ts";
import { runCommand, type Variables } from "../../support/serve/command.ts";
import {
  type DeployedChains,
  deployer,
  operator,
  startDeployedChains,
} from "../../support/serve/deployed-chains.ts";
import { createShop } from "../../support/serve/shop.ts";
import { startSigner } from "../../support/serve/signer-server.ts";
import { forwardingTo, refusing, startStubNode } from "../../support/stub-node.ts";

let deployed: DeployedChains<"base" | "polygon">;
let base: LocalNode;
beforeAll(async () => {
  deployed = await startDeployedChains(["base", "polygon"]);
  base = deployed.chains.base.node;
});
afterAll(() => deployed.stop());

const recoverer = accountOf("recoverer").address;

type MigrationLog = Kysely<{ kysely_migration: { name: string; timestamp: string } }>;

/** The output of `doctor` about base alone, after changes of a good configuration. */
function examine(changes: Variables = {}): Promise<Outcome> {
  return runHere(["doctor"], { ...deployed.variables, POLYGON_RPC_URL: "", ...changes });
}

/** The outcome and the name of every check, by the part that it belongs to. */
function checksIn(outcome: Outcome): Record<string, string[]> {
  const parts = shown(outcome)
    .split(/\n\n?(?=\w+\n)/)
    .slice(1);
  return Object.fromEntries(
    parts.map((part) => {
      const checks = part.matchAll(/^ {2}(ok|FAIL|warn|-) +(\S+(?: \S+)*) {2,}/gm);
      return [part.split("\n")[0] ?? "", [...checks].map(([, level, name]) => `${level} ${name}`)];
    }),
  );
}

/** Its output while other code stands at an address. */
async function examineWith(address: Hex, code: Hex, changes?: Variables): Promise<Outcome> {
  const before = await base.request("eth_getCode", address, "latest");
  await base.request("anvil_setCode", address, code);
  const outcome = await examine(changes);
  await base.request("anvil_setCode", address, before);
  return outcome;
}

/** A contract that answers every call with a word of zeros. */
const other = "0x60206000f3";

/** What a person sees, without what differs from run to run. */
function shown({ stdout, stderr }: Outcome): string {
  return `\n${stdout}${stderr}`
    .replace(/answers in \d+ ms/g, "answers in N ms")
    .replace(/in \d+ ms$/gm, "in N ms")
    .replace(/block [\d,]+ is \d+ s old/g, "block N is N s old")
    .replace(/the base fee is [\d.]+ gwei/g, "the base fee is N gwei")
    .replace(/needs [\d.]+/g, "needs N")
    .replace(/buys [\d,]+ settlements at [\d.]+/g, "buys N settlements at N")
    .replace(/(?<=SQLite, )\S+(?=\/facilitator)/g, "…")
    .replaceAll(deployed.contract, "0xCONTRACT");
}

/** The lines about one check, and what stands below them. */
function linesOf({ stdout }: Outcome, name: string): string[] {
  const lines = stdout.split("\n");
  return lines
    .flatMap((line, index) =>
      line.slice(8).startsWith(`${name} `)
        ? [line, ...(lines[index + 1]?.includes("→") ? [lines[index + 1]] : [])]
        : [],
    )
    .map((line) => line?.trim().replace(/ {2,}/g, " ") ?? "");
}

test("a node can neither control the terminal nor forge a line", async () => {
  const hostile = "\u001b[2J\u009b31m\u202e\r\n  ok    contract  forged";
  const node = await startStubNode(refusing({ code: -32_000, message: hostile, data: hostile }));
  try {
    const { code, stdout, stderr } = await examine({ BASE_RPC_URL: node.url });
    expect(code).toBe(1);
    expect(stdout).toContain("\\u001b[2J\\u009b31m\\u202e\\u000d\\u000a");
    expect(`${stdout}${stderr}`).not.toMatch(/[^\P{Cc}\n]|\u202e/u);
    expect(stdout.split("\n")).not.toContain("  ok    contract  forged");
  } finally {
    await node.stop();
  }
});

test("a good configuration", async () => {
  const { base: one, polygon: other } = deployed.chains;
  const outcome = await runCommand(["doctor"], {
    ...deployed.variables,
    BASE_RPC_URL: `${one.rpcUrl},${one.rpcUrl}/?second`,
    POLYGON_RPC_URL: `${other.rpcUrl},${other.rpcUrl}/?second`,
  });
  expect(outcome.code).toBe(0);
  const perNetwork = [
    ...["RPC 1", "chain id 1", "head 1", "RPC 2", "chain id 2", "head 2", "contract", "operator", "fee"],
    ...["gas money", "asset", "Permit2", "escrow", "txNonce"],
  ];
  expect(checksIn(outcome)).toEqual({
    configuration: ["ok variables"],
    database: ["ok database"],
    base: perNetwork.map((name) => `ok ${name}`),
    polygon: perNetwork.map((name) => `ok ${name}`),
  });
  expect(shown(outcome)).toMatch(/\n\nAll is well: serve may be started\.\n$/);
});

test("a configuration with much that is wrong", async () => {
  const { rpcUrl } = deployed.chains.base;
  const outcome = await runCommand(["doctor"], {
    ...deployed.variables,
    BASE_RPC_URL: `${rpcUrl},http://127.0.0.1:1/secret-of-the-url,${deployed.chains.polygon.rpcUrl}`,
    OPTIMISM_RPC_URL: "http://127.0.0.1:1/secret-of-the-url",
    POLYGON_RPC_URL: rpcUrl,
    OPERATOR_PRIVATE_KEY: harnessAccounts.admin.privateKey,
    RECOVERER_PRIVATE_KEY: keyOf("recoverer"),
    ASSETS: `[{"network":"base","address":"${operator}","name":"EURC","version":"2","decimals":6}]`,
    DATABASE_URL: `sqlite:${join(tmpdir(), randomUUID())}/facilitator.db`,
    CONFIRMATIONS: "optimism=30",
  });
  expect(outcome.code).toBe(1);
  expect(checksIn(outcome)).toEqual({
    configuration: ["ok variables", "FAIL OPERATOR_PRIVATE_KEY", "warn CONFIRMATIONS"],
    database: ["FAIL database"],
    base: [
      ...["ok RPC 1", "ok chain id 1", "ok head 1", "warn RPC 2", "ok RPC 3", "FAIL chain id 3"],
      ...["FAIL confirming", "ok contract", "FAIL operator", "FAIL recoverer", "ok forward limit"],
      ...["warn forward limit", "ok fee", "ok gas money", "FAIL gas money", "ok asset", "FAIL asset"],
      ...["ok Permit2", "ok escrow", "ok txNonce"],
    ],
    optimism: ["FAIL RPC", "warn RPC endpoints", "- the rest"],
    polygon: ["ok RPC", "FAIL chain id", "warn RPC endpoints", "- the rest"],
  });
  const text = shown(outcome);
  expect(text).toContain("10 of 29 checks failed: serve would not be safe. 5 warnings.\n");
  expect(text).toContain(
    "→ The admin grants it: npx --no-install x402-kit deploy --network base --grant-operator",
  );
  expect(text).not.toContain("secret-of-the-url");
});

test("a configuration that cannot be read", async () => {
  const outcome = await examine({ API_KEY_PEPPER: "secret", BASE_RPC_URL: "", PORT: "http" });
  expect(outcome.code).toBe(1);
  expect(shown(outcome)).toMatchInlineSnapshot(`
    "
    configuration
      FAIL  BASE_RPC_URL    no network is served: give the RPC URL of one, by this or another *_RPC_URL
                            → For example https://base.example/v2/KEY,https://base-2.example
      FAIL  API_KEY_PEPPER  has 6 characters; it needs N or more
                            → For example what \`openssl rand -hex 32\` prints
      FAIL  PORT            "http" is not a whole number from 0 to 65535
                            → For example 8080

    3 of 3 checks failed: serve would not be safe.
    How it is set up, step by step: docs/guides/operators.md; the contract is deployed by npx --no-install x402-kit deploy
    "
  `);
});

test("for scripts there is one line of JSON, with the same verdict", async () => {
  const json = async (changes: Variables) => {
    const { code, stdout } = await runHere(["doctor", "--json"], { ...deployed.variables, ...changes });
    return { code, examination: JSON.parse(stdout) };
  };
  const good = await json({});
  expect(good.code).toBe(0);
  expect(good.examination.safe).toBe(true);
  expect(good.examination.parts.map(({ name }: { name: string }) => name)).toEqual([
    "configuration",
    "database",
    "base",
    "polygon",
  ]);
  const bad = await json({ FACILITATOR_CONTRACT_MAINNET: operator });
  expect(bad.code).toBe(1);
  expect(bad.examination.safe).toBe(false);
  expect(bad.examination.parts[2].checks).toContainEqual({
    name: "contract",
    status: "failed",
    detail: `there is no facilitator contract at ${operator}`,
    advice:
      "Deploy it with npx --no-install x402-kit deploy --network base, or correct FACILITATOR_CONTRACT_MAINNET.",
    fatal: true,
  });
});

test("shows no key, no URL, no pepper and no password, whatever is wrong", async () => {
  const secrets: Variables = {
    BASE_RPC_URL: "http://127.0.0.1:1/v2/secret-of-the-url",
    OPERATOR_PRIVATE_KEY: keyOf("secret operator"),
    RECOVERER_PRIVATE_KEY: keyOf("secret recoverer"),
    API_KEY_PEPPER: "a7c1f0e9b8d2634455aa01c9e7f3d2b1",
    DATABASE_URL: "postgres://kit:secret-of-the-database@127.0.0.1:1/kit",
  };
  for (const args of [["doctor"], ["doctor", "--json"]]) {
    const { code, stdout, stderr } = await runHere(args, { ...deployed.variables, ...secrets });
    expect(code).toBe(1);
    for (const hidden of ["secret-of", ...Object.values(secrets).map((value) => value.replace("0x", ""))]) {
      expect(`${stdout}${stderr}`).not.toContain(hidden);
    }
  }
});

describe("of the contract it says", () => {
  test("that something else stands there", async () => {
    const address = accountOf("something else").address;
    await base.request("anvil_setCode", address, "0x00");
    const outcome = await examine({ FACILITATOR_CONTRACT_MAINNET: address });
    expect(linesOf(outcome, "contract")).toEqual([
      `FAIL contract ${address} has other code than this version's contract`,
      "→ Correct FACILITATOR_CONTRACT_MAINNET, deploy anew with npx --no-install x402-kit deploy --network base, or run the version that deployed it.",
    ]);
    expect(linesOf(outcome, "operator")[0]).toBe(
      `FAIL operator unknown whether ${operator} holds OPERATOR_ROLE: the contract has no roles`,
    );
    expect(outcome.code).toBe(1);
  });

  test("that it is paused", async () => {
    await sendAsDeployer("0x8456cb59");
    const outcome = await examine();
    await sendAsDeployer("0x3f4ba83a");
    expect(linesOf(outcome, "paused")).toEqual([
      "warn paused the contract is paused: nothing settles through it",
      "→ Its pauser ends that with unpause().",
    ]);
    expect(outcome.code).toBe(0);
  });

  test("that the server's key is the admin's", async () => {
    const outcome = await examine({ OPERATOR_PRIVATE_KEY: keyOf("deployer") });
    expect(linesOf(outcome, "admin")[0]).toBe(
      `warn admin ${deployer} is also the admin of the contract: a thief of this server's key would control it`,
    );
    expect(linesOf(outcome, "operator")[0]).toBe(`FAIL operator ${deployer} does not hold OPERATOR_ROLE`);
  });

  test("whether the recoverer may recover", async () => {
    const outcome = await examine({ RECOVERER_PRIVATE_KEY: keyOf("recoverer") });
    expect(linesOf(outcome, "recoverer")).toEqual([
      `FAIL recoverer ${recoverer} does not hold RECOVERER_ROLE`,
      "→ The admin grants it, by grantRole; without it, leave RECOVERER_PRIVATE_KEY out.",
    ]);
    expect(linesOf(outcome, "gas money").slice(1)).toEqual([
      expect.stringMatching(
        new RegExp(`^FAIL gas money 0 ETH of ${recoverer} does not cover one recovery, `),
      ),
      "→ Send it ETH on base.",
    ]);
  });

  test("that all is well with a recoverer that has its role and gas money", async () => {
    const role = keccak256Text("RECOVERER_ROLE").slice(2);
    await sendAsDeployer(`0x2f2ff15d${role}${addressWord(recoverer)}`);
    await deployed.chains.base.setBalance(recoverer, 10n ** 16n);
    const outcome = await examine({ RECOVERER_PRIVATE_KEY: keyOf("recoverer") });
    expect(linesOf(outcome, "recoverer")).toEqual([`ok recoverer ${recoverer} holds RECOVERER_ROLE`]);
    expect(linesOf(outcome, "gas money")[1]).toMatch(
      new RegExp(`^ok gas money 0\\.01 ETH of ${recoverer} buys [\\d,]+ recoveries at `),
    );
    expect(outcome.code).toBe(0);
  });

  test("whether the sponsor has what it may give", async () => {
    const { address } = accountOf("sponsor");
    const gifts = { MAX_GIFT: "base=0.0001", DAILY_GIFTS: "base=0.01" };
    const sponsored = { SPONSOR_PRIVATE_KEY: keyOf("sponsor"), ...gifts };
    const empty = await examine(sponsored);
    expect(linesOf(empty, "gifts")).toEqual([
      `warn gifts 0 ETH of the sponsor ${address} do not cover one gift, up to 0.0001 ETH and its gas: payers without gas are told to approve Permit2 by themselves`,
      "→ Send it ETH on base, or lower MAX_GIFT=base=….",
    ]);
    expect(empty.code).toBe(0);
    await deployed.chains.base.setBalance(address, 10n ** 16n);
    expect(linesOf(await examine(sponsored), "gifts")).toEqual([
      `ok gifts 0.01 ETH of the sponsor ${address} are a day's gifts, 0.01 ETH`,
    ]);
    expect(linesOf(await examine(sponsored), "GAS_SPONSORING")).toEqual([
      "warn GAS_SPONSORING does not name erc20ApprovalGasSponsoring, for which MAX_GIFT and DAILY_GIFTS are: nothing is given",
    ]);
    const half = await examine({ ...sponsored, DAILY_GIFTS: "" });
    expect([half.code, linesOf(half, "DAILY_GIFTS")[0]]).toEqual([
      1,
      "FAIL DAILY_GIFTS is needed for base, which MAX_GIFT names: without it nothing is given there",
    ]);
    const published = { ...sponsored, SPONSOR_PRIVATE_KEY: harnessAccounts.sponsor.privateKey };
    expect(linesOf(await examine(published), "SPONSOR_PRIVATE_KEY")[0]).toContain("is a published test key");
  });

  test("that a recoverer is an operator too, whose key a remote signer has", async () => {
    const outcome = await examine({
      OPERATOR_PRIVATE_KEY: "",
      OPERATOR_SIGNER_URL: "http://127.0.0.1:1",
      OPERATOR_ADDRESS: operator,
      RECOVERER_PRIVATE_KEY: keyOf("operator"),
    });
    expect(linesOf(outcome, "RECOVERER_PRIVATE_KEY")[0]).toBe(
      `FAIL RECOVERER_PRIVATE_KEY is the key of the operator ${operator}: one that leaks could then do both; use another`,
    );
    expect(outcome.code).toBe(1);
  });

  async function sendAsDeployer(data: Hex): Promise<void> {
    await base.request("anvil_impersonateAccount", deployer);
    await base.request("eth_sendTransaction", { from: deployer, to: deployed.contract, data });
    await base.request("evm_mine");
  }
});

describe("of an operator's gas money it says", () => {
  const withBalance = async (wei: bigint) => {
    await deployed.chains.base.setBalance(operator, wei);
    const outcome = await examine();
    await deployed.chains.base.setBalance(operator, 10n ** 18n);
    return outcome;
  };

  test("that it does not cover one settlement", async () => {
    const outcome = await withBalance(1_000n);
    expect(linesOf(outcome, "gas money")).toEqual([
      expect.stringMatching(
        new RegExp(
          `^FAIL gas money 0\\.000000000000001 ETH of ${operator} does not cover one settlement, which needs `,
        ),
      ),
      "→ Send it ETH on base.",
    ]);
    expect(outcome.code).toBe(1);
  });

  test("that it will not last", async () => {
    const outcome = await withBalance(10n ** 16n);
    expect(linesOf(outcome, "gas money")).toEqual([
      expect.stringMatching(/^warn gas money 0\.01 ETH of .* buys \d\d settlements at 0\.0001\d+ ETH each$/),
      "→ Send it more soon.",
    ]);
    expect(outcome.code).toBe(0);
  });

  test("that it will not last for as many payments as are asked for", async () => {
    const outcome = await examine({ GAS_HORIZON_PAYMENTS: "10000000" });
    expect(linesOf(outcome, "gas money")).toEqual([
      expect.stringMatching(/^warn gas money .* buys [\d,]+ settlements at 0\.\d+ ETH each$/),
      "→ Send it more soon.",
    ]);
    expect(outcome.code).toBe(0);
  });

  test("that the base fee is above the cap", async () => {
    await base.request("anvil_setNextBlockBaseFeePerGas", "0x77359400");
    await base.request("evm_mine");
    const outcome = await examine({ MAX_FEE_GWEI: "base=0.5" });
    expect(linesOf(outcome, "fee")[0]).toMatch(
      /^warn fee the base fee is [12][\d.]* gwei, the cap 0\.5 gwei: nothing is mined until it has come down$/,
    );
  });
});

describe("of tokens it says", () => {
  test.each<[string, object, string]>([
    ["that none is there", { address: operator }, `there is no EIP-3009 token at ${operator}`],
    [
      "that none is there which only Permit2 could move",
      { address: operator, version: undefined },
      `there is no contract at ${operator}`,
    ],
    [
      "that it signs for another name",
      { address: networks.polygon.usdc.address, name: "USDC" },
      `the token ${networks.polygon.usdc.address} signs for another domain than name "USDC", version "2"`,
    ],
  ])("%s", async (_name, changes, detail) => {
    // A contract there that answers every call with a word of zeros, as no token does with its domain.
    await base.request("anvil_setCode", networks.polygon.usdc.address, "0x60206000f3");
    const asset = { network: "base", address: "", name: "Euro", version: "2", decimals: 6, ...changes };
    const outcome = await examine({ ASSETS: JSON.stringify([asset]) });
    expect(linesOf(outcome, "asset").at(-2)).toBe(`FAIL asset ${detail}`);
    expect(outcome.code).toBe(1);
  });
});

describe("of Permit2 it says", () => {
  const advice =
    "→ Anybody can deploy it there (by CREATE2). Until then verify answers permit2_proxy_not_deployed to such payments; those by EIP-3009 go on.";
  const upto = uptoProxyAddress;

  test.each<[string, Hex, Hex, string]>([
    [
      "that it is not there",
      permit2Address,
      "0x",
      `there is no Permit2 at ${permit2Address}: no payment by Permit2 settles`,
    ],
    [
      "that a proxy of x402 is not there",
      ...([upto, "0x"] as const),
      `there is no proxy of x402 at ${upto}: no payment by Permit2 of scheme upto settles`,
    ],
    [
      "that a proxy of x402 uses another one",
      ...([upto, other] as const),
      `what is there is no proxy of x402 that uses Permit2, at ${upto}: no payment by Permit2 of scheme upto settles`,
    ],
  ])("%s, and that EIP-3009 goes on", async (_name, address, code, detail) => {
    const outcome = await examineWith(address, code);
    expect(linesOf(outcome, "Permit2")).toEqual([`warn Permit2 ${detail}`, advice]);
    expect(outcome.code).toBe(0);
  });

  test("that an asset which is paid in no other way cannot be paid", async () => {
    const { address } = accountOf("plain token");
    await base.request("anvil_setCode", address, other);
    const asset = { network: "base", address, name: "Plain", decimals: 6 };
    const outcome = await examineWith(upto, "0x", { ASSETS: JSON.stringify([asset]) });
    expect(linesOf(outcome, "Permit2")[0]).toBe(
      `FAIL Permit2 there is no proxy of x402 at ${upto}: no payment by Permit2 of scheme upto settles, and Plain can be paid in no other way`,
    );
    expect(outcome.code).toBe(1);
  });
});

test.each<[string, Hex, Hex, string]>([
  ["is not there", batchSettlementAddress, "0x", `there is none of x402 at ${batchSettlementAddress}`],
  [
    "has code that the chain does not run",
    ...([batchSettlementAddress, "0xfe"] as const),
    `the chain does not run the code at ${batchSettlementAddress}`,
  ],
  [
    "is not that of a collector",
    ...([permit2CollectorAddress, other] as const),
    `there is no collector of x402 at ${permit2CollectorAddress}`,
  ],
])("of an escrow that %s it takes note", async (_name, address, code, detail) => {
  const outcome = await examineWith(address, code);
  expect(linesOf(outcome, "escrow")).toEqual([
    `ok escrow ${detail}; nothing here needs scheme batch-settlement`,
  ]);
  expect(outcome.code).toBe(0);
});

describe("where scheme batch-settlement is offered it warns", () => {
  const offered = { PAY_TO: "recipients" };
  const wallets = { ...offered, WALLET_FACTORIES: "0x5FbDB2315678afecb367f032d93F642f64180aa3" };

  test.each<[string, Hex, Variables, "ok" | "warn"]>([
    ["without an escrow", batchSettlementAddress, offered, "warn"],
    ["without Multicall3 for wallets that are deployed with a deposit", multicall3Address, wallets, "warn"],
    ["of nothing without Multicall3, if no wallet is deployed", multicall3Address, offered, "ok"],
  ])("%s", async (_name, address, changes, level) => {
    expect(linesOf(await examine(changes), "escrow")[0]).toMatch(/^ok escrow 0x/);
    const outcome = await examineWith(address, "0x", changes);
    const [line, advice] = linesOf(outcome, "escrow");
    expect(line).toMatch(new RegExp(`^${level} escrow ${level === "ok" ? "" : `.*${address}`}`));
    expect(advice !== undefined).toBe(level === "warn");
    expect(outcome.code).toBe(0);
  });
});

describe("of RPC endpoints it says", () => {
  const withHead = async (change: (seconds: number) => number) => {
    const node = await startStubNode(
      altering(forwardingTo(base.rpcUrl), "eth_getBlockByNumber", (block) => {
        const { timestamp, ...rest } = block as { timestamp: Hex };
        return { ...rest, timestamp: `0x${change(Number(timestamp)).toString(16)}` };
      }),
    );
    const outcome = await examine({ BASE_RPC_URL: node.url });
    const beside = await examine({ BASE_RPC_URL: `${node.url},${base.rpcUrl}` });
    await node.stop();
    return { outcome, beside };
  };

  test("that one has stopped following the chain, and that a second one alone cannot confirm anything", async () => {
    const { outcome, beside } = await withHead((seconds) => seconds - 1_000);
    expect(linesOf(outcome, "head")).toEqual([
      expect.stringMatching(/^FAIL head block [\d,]+ is 1,00\d s old$/),
      "→ The node has stopped following the chain, or the clock of this machine is wrong.",
    ]);
    expect(linesOf(outcome, "contract")).toEqual([
      `ok contract ${deployed.contract} has every function of this version`,
    ]);
    expect(outcome.code).toBe(1);
    expect(linesOf(beside, "head 1")[0]).toMatch(/^warn head 1 block [\d,]+ is 1,00\d s old$/);
    expect(linesOf(beside, "confirming")[0]).toMatch(/^FAIL confirming degraded: 1 of 2 /);
    expect(beside.code).toBe(1);
  });

  test("that a clock is wrong", async () => {
    const { outcome } = await withHead((seconds) => seconds + 500);
    expect(linesOf(outcome, "head")[0]).toMatch(
      /^FAIL head block [\d,]+ is (49|50)\d s ahead of this machine's clock$/,
    );
  });

  test("that one serves another chain, which is not bearable beside any", async () => {
    const outcome = await examine({ BASE_RPC_URL: `${base.rpcUrl},${deployed.chains.polygon.rpcUrl}` });
    expect(linesOf(outcome, "chain id 2")).toEqual([
      "FAIL chain id 2 the RPC serves chain 137, but base is chain 8453",
      "→ BASE_RPC_URL names a node of another network.",
    ]);
    expect(outcome.code).toBe(1);
  });
});

describe("of the database it says", () => {
  /** Changes what stands in the database about its migrations. */
  const withMigrations = async (change: (db: MigrationLog) => Promise<unknown>): Promise<Outcome> => {
    const file = join(tmpdir(), `${randomUUID()}.db`);
    copyFileSync(deployed.databaseUrl.replace("sqlite:", ""), file);
    const db = await openDatabase({ url: `sqlite:${file}` });
    await change(db.$extendTables());
    await db.destroy();
    const outcome = await examine({ DATABASE_URL: `sqlite:${file}` });
    rmSync(file);
    return outcome;
  };

  test("that its keys were made with another pepper", async () => {
    const file = join(tmpdir(), `${randomUUID()}.db`);
    const url = `sqlite:${file}`;
    copyFileSync(deployed.databaseUrl.replace("sqlite:", ""), file);
    await createShop(url);
    const good = await examine({ DATABASE_URL: url });
    const bad = await examine({ DATABASE_URL: url, API_KEY_PEPPER: randomBytes(32).toString("hex") });
    rmSync(file);
    expect([good.code, bad.code]).toEqual([0, 1]);
    expect(linesOf(bad, "pepper")).toEqual([
      "FAIL pepper API_KEY_PEPPER is not the one that the API keys were made with, so every key would be answered 401",
      "→ Set the one that the keys were made with. If it is lost, or changed on purpose: npx --no-install x402-kit key accept-pepper, and issue new keys.",
    ]);
  });

  test("that it is behind, and by what", async () => {
    const outcome = await withMigrations((log) =>
      log.deleteFrom("kysely_migration").where("name", "!=", "0001-initial").execute(),
    );
    expect(linesOf(outcome, "database").slice(-2)).toEqual([
      expect.stringMatching(/^FAIL database SQLite, .*\.db: behind this version by 0002-\w+/),
      "→ Run npx --no-install x402-kit migrate, or start with npx --no-install x402-kit serve --migrate.",
    ]);
    expect(outcome.code).toBe(1);
  });

  test("that a newer version has been at it", async () => {
    const outcome = await withMigrations((log) =>
      log.insertInto("kysely_migration").values({ name: "0999-future", timestamp: "2099" }).execute(),
    );
    expect(linesOf(outcome, "database").slice(-2)[0]).toBe(
      "FAIL database The database is newer than this software: it has the migration 0999-future",
    );
  });

  test("what is missing, and creates nothing", async () => {
    const file = join(tmpdir(), `${randomUUID()}.db`);
    const outcome = await examine({ DATABASE_URL: `sqlite:${file}` });
    expect(linesOf(outcome, "database").slice(-2)).toEqual([
      `FAIL database SQLite, ${file}: does not exist yet`,
      "→ Run npx --no-install x402-kit migrate, or start with npx --no-install x402-kit serve --migrate.",
    ]);
    expect((await examine({ DATABASE_URL: `sqlite:${file}` })).stdout).toContain("does not exist yet");
  });

  test("that the operator has transactions which it does not know, even before it exists", async () => {
    const used = accountOf("used operator").address;
    await base.request("anvil_setNonce", used, "0x5");
    const variables = { OPERATOR_PRIVATE_KEY: keyOf("used operator") };
    const missing = `sqlite:${join(tmpdir(), `${randomUUID()}.db`)}`;
    for (const outcome of [
      await examine(variables),
      await examine({ ...variables, DATABASE_URL: missing }),
    ]) {
      expect(linesOf(outcome, "txNonce")[0]).toContain(`FAIL txNonce ${used} has sent 5 transactions`);
      expect(outcome.code).toBe(1);
    }
  });

  test("that another program sends with the operator's key", async () => {
    const other = accountOf("busy operator").address;
    const db = await openDatabase({ url: deployed.databaseUrl });
    await createLedger({ db, instanceId: randomUUID(), now: Date.now }).claims.introduceOperator(
      8453,
      other,
      3,
    );
    await db.destroy();
    await base.request("anvil_setNonce", other, "0x5");
    const outcome = await examine({ OPERATOR_PRIVATE_KEY: keyOf("busy operator") });
    expect(linesOf(outcome, "txNonce")).toEqual([
      `FAIL txNonce the chain is at 5 for ${other}, and this database at 3: another service sends with this key, or the database is an old copy`,
      expect.stringMatching(/^→ One key belongs to one database\. /),
    ]);
    expect(outcome.code).toBe(1);
  });
});

describe("of a remote signer it says", () => {
  test.each<[string, Hex, string]>([
    ["that it signs", keyOf("operator"), `ok signer signs for ${operator} in`],
    [
      "that it has another key",
      keyOf("other"),
      `FAIL signer The remote signer did not sign for ${operator}: it signed with another key than that of the account`,
    ],
  ])("%s", async (_name, key, line) => {
    const signer = await startSigner(key);
    const outcome = await examine({
      OPERATOR_PRIVATE_KEY: "",
      OPERATOR_SIGNER_URL: signer.url,
      OPERATOR_ADDRESS: operator,
    });
    await signer.stop();
    expect(linesOf(outcome, "signer")[0]).toContain(line);
    expect(outcome.stdout).not.toContain("secret-of-the-url");
  });
});
