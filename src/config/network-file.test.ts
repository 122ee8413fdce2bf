import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { networkNames } from "../protocol/networks.ts";
import { ConfigurationError } from "../util/errors.ts";
import { readEnvironment } from "./environment.ts";
import { type NetworkData, readNetworkData, readNetworkFile } from "./network-file.ts";
import { InvalidValue } from "./values.ts";

const token = {
  address: "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E",
  name: "USD Coin",
  version: "2",
  decimals: 6,
};

const avalanche: NetworkData = {
  name: "avalanche",
  caip2: "eip155:43114",
  tier: "mainnet",
  token,
  confirmations: 2,
  blockTimeMs: 2_000,
  maxFeeGwei: "50",
  nativeCoin: "AVAX",
};

const directory = mkdtempSync(join(tmpdir(), "x402-networks-"));
const file = join(directory, "networks.json");

beforeAll(() => writeFileSync(file, JSON.stringify(avalanche)));
afterAll(() => rmSync(directory, { recursive: true }));

function problemOf(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    if (error instanceof InvalidValue) return error.message;
    throw error;
  }
  throw new Error("it was taken");
}

test("a file of one network adds it to those that are built in", () => {
  const known = readNetworkFile(file);
  expect(known.names).toEqual([...networkNames, "avalanche"]);
  expect(known.find("eip155:43114", 2)).toEqual({
    name: "avalanche",
    caip2: "eip155:43114",
    chainId: 43_114,
    tier: "mainnet",
    usdc: token,
    confirmations: 2,
    blockTimeMs: 2_000,
    maxFeePerGas: 50_000_000_000n,
    dailyGasBudget: 5_400_000_000_000_000_000n,
    nativeCoin: "AVAX",
  });
});

describe("a file that is wrong is refused with its field", () => {
  test.each<[why: string, data: unknown, problem: string]>([
    [
      "no token",
      { ...avalanche, token: undefined },
      "token: is missing: it must be the token's address, name, version and decimals",
    ],
    [
      "no decimals",
      { ...avalanche, token: { ...token, decimals: undefined } },
      "token.decimals: is missing: it must be a whole number from 0 to 36",
    ],
    ["a misspelt field", { ...avalanche, confirmation: 3 }, "confirmation: there is no such field"],
    [
      "a name in capitals",
      { ...avalanche, name: "Avalanche" },
      "name: must be lower-case letters, digits and single hyphens, such as my-chain",
    ],
    [
      "another kind of chain",
      { ...avalanche, caip2: "solana:1" },
      "caip2: must be eip155: and the chain id, such as eip155:43114",
    ],
    ["two chain ids", { ...avalanche, chainId: 1 }, "chainId: is not the one of caip2"],
    [
      "no tier",
      { ...avalanche, tier: "main" },
      "tier: must be mainnet or testnet: it chooses the contract's address and CREATE2 salt",
    ],
    [
      "an address with a typo",
      { ...avalanche, token: { ...token, address: token.address.replace("B97E", "b97E") } },
      "token.address: has a wrong checksum (EIP-55): a digit may be mistyped",
    ],
    [
      "a fee that is none",
      { ...avalanche, maxFeeGwei: "much" },
      'maxFeeGwei: "much" is not a number of gwei above 0 and below 1,000,000',
    ],
    ["a coin that no terminal can show", { ...avalanche, nativeCoin: "\u0007" }, "nativeCoin: must be ASCII"],
    [
      "a built-in name",
      { ...avalanche, name: "base" },
      'name: "base" is a built-in network; give each network a name of its own',
    ],
    [
      "a built-in chain",
      { ...avalanche, caip2: "eip155:8453" },
      "caip2: eip155:8453 is the chain of base, which is built in; leave this one out",
    ],
    [
      "one name twice",
      [avalanche, { ...avalanche, caip2: "eip155:1" }],
      '[1].name: "avalanche" is there twice; give each network a name of its own',
    ],
    [
      "one chain twice",
      [avalanche, { ...avalanche, name: "other" }],
      "[1].caip2: eip155:43114 is the chain of avalanche, which is there already; leave this one out",
    ],
    ["a text", "avalanche", "must be a network"],
    ["an empty list", [], "is an empty list: it names no network"],
    [
      "several things at once",
      [avalanche, { ...avalanche, tier: "main", token: { ...token, decimals: -1 }, colour: "red" }],
      "[1].tier: must be mainnet or testnet: it chooses the contract's address and CREATE2 salt; [1].token.decimals: must be a whole number from 0 to 36; [1].colour: there is no such field",
    ],
  ])("%s", (_why, data, problem) => {
    expect(problemOf(() => readNetworkData(data))).toContain(problem);
  });

  test("that is not there, or not JSON", () => {
    expect(problemOf(() => readNetworkFile("/nowhere/networks.json"))).toBe(
      "names the file /nowhere/networks.json, which does not exist",
    );
    expect(problemOf(() => readNetworkFile(directory))).toContain("which is a folder");
    writeFileSync(join(directory, "bad.json"), "{");
    expect(problemOf(() => readNetworkFile(join(directory, "bad.json")))).toContain("which is not JSON");
  });
});

const served = {
  NETWORKS_FILE: file,
  AVALANCHE_RPC_URL: "https://avalanche.example/key",
  FACILITATOR_CONTRACT_MAINNET: "0x4020000000000000000000000000000000000001",
  OPERATOR_PRIVATE_KEY: `0x${"5e".repeat(31)}01`,
  API_KEY_PEPPER: "fV8sK1mQz7Rt2LpX9cWb4HnJ6dYg3AuE",
};

test("x402 stands for the default chains of the public packages", () => {
  const { names, named } = readNetworkFile("x402");
  expect(names).toContain("avalanche");
  expect(named("avalanche")?.usdc).toEqual(token);
  expect(names.length).toBeGreaterThan(15);
});

test("that file is what the installed packages say", { timeout: 20_000 }, async () => {
  const script = fileURLToPath(new URL("../../scripts/generate-networks.ts", import.meta.url));
  await promisify(execFile)(process.execPath, [script, "--check"]);
});

test("serve serves a network of the file once it has its RPC URL", () => {
  const { networks } = readEnvironment(served);
  expect(networks).toHaveLength(1);
  expect(networks[0]).toMatchObject({
    name: "avalanche",
    chainId: 43_114,
    confirmations: 2,
    maxFeePerGas: 50_000_000_000n,
    rpcUrls: ["https://avalanche.example/key"],
    assets: [token],
  });
});

test("variables and lists of values may name it", () => {
  const { networks } = readEnvironment({
    ...served,
    CONFIRMATIONS: "avalanche=7",
    MAX_FEE_GWEI: "avalanche=1.5",
    ASSETS: JSON.stringify([
      { ...token, network: "avalanche", address: `0x${"ab".repeat(20)}`, name: "Other" },
    ]),
  });
  expect(networks[0]).toMatchObject({ confirmations: 7, maxFeePerGas: 1_500_000_000n });
  expect(networks[0]?.assets.map(({ name }) => name)).toEqual(["USD Coin", "Other"]);
});

test("what is wrong with the file or with its variable is one problem among the others", () => {
  const problems = (env: Record<string, string>) => {
    try {
      readEnvironment(env);
      return [];
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      return error.problems.map(({ name }) => name);
    }
  };
  expect(problems({ ...served, NETWORKS_FILE: "/nowhere.json" })).toContain("NETWORKS_FILE");
  expect(problems({ ...served, AVALANCHE_RPC_URL: "avalanche" })).toContain("AVALANCHE_RPC_URL");
  expect(problems({ ...served, OPERATOR_PRIVATE_KEY: "" })).toEqual(["OPERATOR_PRIVATE_KEY"]);
});
