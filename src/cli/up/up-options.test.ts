import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { assignRpcPorts } from "../../config/rpc-ports.ts";
import { InvalidValue } from "../../config/values.ts";
import { variablesOf } from "../../config/variables.ts";
import { networkNames } from "../../protocol/networks.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { readCommandLine } from "../kit/command-line.ts";
import { serve } from "../serve/serve.ts";
import { checkUp, readForkRequests, resolveForks, upOptions } from "./up-options.ts";

const token = "0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42";
const read = (args: readonly string[], env = {}) =>
  readCommandLine({ options: upOptions, check: checkUp }, args, env).values;

function problemsOf(args: readonly string[], env = {}): readonly string[] {
  try {
    read(args, env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return error.problems.map(({ name, problem }) => `${name}: ${problem}`);
  }
}

test("--asset says where the token stands and what its domain is, and USDC fills in the rest", () => {
  const args = ["--asset", `base=${token},Euro Coin,3,8; polygon=${token.toLowerCase()}`];
  expect(read(args).asset).toEqual({
    base: { address: token, name: "Euro Coin", version: "3", decimals: 8 },
    polygon: { address: token, name: "USD Coin", version: "2", decimals: 6 },
  });
  expect(read([], { LOCAL_ASSETS: `base=${token}` }).asset).toMatchObject({ base: { address: token } });
});

test("--claim reads schemes and networks, of version 1 where the network has a name of its own", () => {
  expect(
    read(["--claim", "exact@solana:Et_W-T,batch-settlement@eip155:84532,exact@solana-devnet"]).claim,
  ).toEqual([
    { x402Version: 2, scheme: "exact", network: "solana:Et_W-T" },
    { x402Version: 2, scheme: "batch-settlement", network: "eip155:84532" },
    { x402Version: 1, scheme: "exact", network: "solana-devnet" },
  ]);
  expect(problemsOf(["--claim", "exact:solana"])).toEqual([
    "--claim: is not a scheme and a network with an @ between them",
  ]);
  expect(problemsOf(["--claim", "exact@a:b,exact@a:b"])).toEqual([
    "--claim: the 2nd claim is the same as the 1st",
  ]);
});

test("ports of nodes are counted from the first one, unless one is named", () => {
  const values = read(["--networks", "base,polygon", "--rpc-ports", "8545..", "--rpc-port", "polygon=9000"]);
  expect(assignRpcPorts(values.networks, values["rpc-port"], values["rpc-ports"])).toEqual({
    base: 8545,
    polygon: 9000,
  });
});

describe("what cannot be is refused before anything starts", () => {
  test.each<[readonly string[], string]>([
    [["--rpc-port", "base"], '--rpc-port: "base" is not of the form NETWORK=VALUE'],
    [["--rpc-port", "base=0"], '--rpc-port: base: "0" is not a whole number from 1 to 65535'],
    [["--rpc-port", "base=1,base=2"], "--rpc-port: names base twice"],
    [["--rpc-port", "base=1,polygon=1"], "--rpc-port: polygon and base have the same port"],
    [["--rpc-port", "base=4402"], "--rpc-port: that of base is the facilitator's own"],
    [["--networks", "base", "--rpc-port", "polygon=1"], "--rpc-port: polygon is not started; started: base"],
    [["--rpc-ports", "8545"], '--rpc-ports: "8545" is not a first port followed by two dots, such as 8545..'],
    [["--rpc-ports", "65533.."], "--rpc-ports: leaves no port for optimism-sepolia"],
    [["--asset", `base=${token.replace("a3E", "A3E")}`], "--asset: "],
    [["--asset", `base=${token},,2`], "--asset: base: has an empty name or version"],
    [["--asset", `base=${token},A,2,40`], '--asset: base: "40" is not a whole number from 0 to 36'],
    [["--asset", "base=0x0000000000000000000000000000000000000001"], "--asset: that of base is the address"],
    [["--open", "--host", "0.0.0.0"], "--open: takes requests without a key, so it listens on this machine"],
    [["--json", "--ready-line", "ready"], "--ready-line: --json prints one line when ready"],
  ])("%j", (args, problem) => {
    expect(problemsOf(args)).toContainEqual(expect.stringContaining(problem));
  });

  test("a network file that cannot be read is the one problem, and not that its networks are unknown", () => {
    const args = ["--network-file", "/nowhere/networks.json", "--networks", "base,avalanche"];
    expect(problemsOf([...args, "--rpc-port", "avalanche=8545", "--port", "x"])).toEqual([
      "--network-file: names the file /nowhere/networks.json, which does not exist",
      '--port: "x" is not a whole number from 0 to 65535',
    ]);
  });

  test("the contract cannot stand where the token does", () => {
    const args = ["--asset", `base=${token}`, "--contract-mainnet", token];
    expect(problemsOf(args)).toEqual(['--contract-mainnet: is the address of the asset "USD Coin"']);
  });

  test("serve is never open", () => {
    expect(() => readCommandLine(serve, ["--open"], {})).toThrow("--open: there is no such option");
    expect(variablesOf("serve")).not.toContain("LOCAL_ASSETS");
  });
});

const secret = "SECRET-0123456789";
const url = `https://rpc.example/v2/${secret}`;
const networks = ["base", "polygon"] as const;

const resolve = (text: string, env = {}) => resolveForks(readForkRequests(text), networks, env);

/** The problems, without any URL. */
function problemOf(text: string, env = {}): string {
  try {
    resolve(text, env);
    return "nothing";
  } catch (error) {
    if (!(error instanceof ConfigurationError || error instanceof InvalidValue)) throw error;
    expect(error.message).not.toContain(secret);
    return error.message;
  }
}

describe("--fork", () => {
  test("takes the URL that is in the file of a variable", async () => {
    const directory = await mkdtemp(join(tmpdir(), "x402-kit-fork-"));
    const file = join(directory, "url");
    await writeFile(file, `${url}\n`);
    try {
      expect(resolve("", { BASE_RPC_URL_FILE: file })).toEqual({ base: url });
      expect(resolve("base", { BASE_RPC_URL_FILE: file })).toEqual({ base: url });
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  test.each([
    ["bare takes the networks whose variable is set", "", { BASE_RPC_URL: url }, { base: url }],
    ["takes the first URL of several", "", { BASE_RPC_URL: `${url}, https://b.example` }, { base: url }],
    [
      "with names takes their variables",
      "polygon",
      { POLYGON_RPC_URL: url, BASE_RPC_URL: url },
      { polygon: url },
    ],
    ["takes a URL", `base=${url}?a=b`, {}, { base: `${url}?a=b` }],
    [
      "takes recordings",
      "base=a.json, polygon=b.json",
      {},
      {
        base: { recording: "a.json" },
        polygon: { recording: "b.json" },
      },
    ],
  ])("%s", (_what, text, env, forks) => {
    expect(resolve(text, env)).toEqual(forks);
  });

  test("that was not given forks nothing, whatever the environment", () => {
    expect(resolveForks(undefined, networks, { BASE_RPC_URL: url })).toEqual({});
  });

  test("says what is wrong, and shows no URL", () => {
    expect([
      problemOf(""),
      problemOf("", { BASE_RPC_URL: " ", OPTIMISM_RPC_URL: url }),
      problemOf("base,optimism"),
      problemOf("ethereum").replace(networkNames.join(", "), "NETWORKS"),
      problemOf("base,base"),
      problemOf("base="),
      problemOf(url),
      problemOf("base", { BASE_RPC_URL: `wss://rpc.example/${secret}` }),
    ]).toMatchInlineSnapshot(`
      [
        "--fork: none of these networks has its RPC URL in the environment (for example BASE_RPC_URL=https://…)",
        "--fork: none of these networks has its RPC URL in the environment (for example BASE_RPC_URL=https://…)",
        "BASE_RPC_URL: is needed to fork base (for example https://base.example/v2/KEY,https://base-2.example)
      --fork: optimism is not started; started: base, polygon",
        ""ethereum" is not one of NETWORKS",
        "names base twice",
        "has nothing after base=",
        "a URL needs the name of its network before it",
        "BASE_RPC_URL: is not a URL that begins with https:// or http://; WebSockets are not supported (for example https://base.example/v2/KEY,https://base-2.example)",
      ]
    `);
  });
});
