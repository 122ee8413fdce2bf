import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import {
  createPublicClient,
  decodeErrorResult,
  encodeFunctionData,
  erc20Abi,
  getAddress,
  type Hex,
  http,
  isHex,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { isRunning, stillRunningAfter } from "../../../test/support/live-processes.ts";
import { programFile } from "../../../test/support/programs.ts";
import { signAs } from "../../../test/support/sign-as.ts";
import { mockUsdcAbi } from "../../contracts/mockUsdc.ts";
import { x402FacilitatorAbi } from "../../contracts/x402Facilitator.ts";
import { encodeProxySettle } from "../../methods/permit2/on-chain/permit2-calls.ts";
import { exactProxyAddress, permit2Address } from "../../methods/permit2/permit.ts";
import { signPermit } from "../../methods/permit2/sign-permit.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { localTokens } from "../../payer/local-chains.ts";
import { type TestPayer, type TestPayerName, testPayers } from "../../payer/test-payers.ts";
import { type NetworkName, networkNames, networks } from "../../protocol/networks.ts";
import { tokenSignature, unwrapErc6492 } from "../../protocol/signed-payment.ts";
import { ConfigurationError } from "../../util/errors.ts";
import { resolveFacilitatorContracts } from "./addresses.ts";
import { type Chains, type StartChainsOptions, startChains } from "./chains.ts";
import type { HarnessChain } from "./prepare-chain.ts";

const facilitatorContracts = resolveFacilitatorContracts();
const million = 1_000_000_000_000n;
const payerNames = Object.keys(testPayers) as TestPayerName[];

const start = (options: Partial<StartChainsOptions> = {}) =>
  startChains({ networks: ["base", "polygon"], facilitatorContracts, ...options });

const wallClock = () => BigInt(Math.floor(Date.now() / 1000));

function read(chain: HarnessChain) {
  const client = createPublicClient({ transport: http(chain.rpcUrl) });
  const token = { address: chain.asset.address, abi: mockUsdcAbi } as const;
  return {
    client,
    balanceOf: (account: Hex) =>
      client.readContract({ ...token, functionName: "balanceOf", args: [account] }),
    allowance: (account: Hex) =>
      client.readContract({ ...token, functionName: "allowance", args: [account, permit2Address] }),
    isBlacklisted: (account: Hex) =>
      client.readContract({ ...token, functionName: "isBlacklisted", args: [account] }),
    text: (functionName: "name" | "symbol" | "version") => client.readContract({ ...token, functionName }),
    domainSeparator: () => client.readContract({ ...token, functionName: "DOMAIN_SEPARATOR" }),
  };
}

/** Settles a payment of a test payer for real, or gives what the call reverts with. */
async function settle(chain: HarnessChain, payer: TestPayerName): Promise<string> {
  const { authorization, signature } = await signAs(payer, {
    asset: chain.asset,
    chainId: chain.network.chainId,
    to: chain.facilitatorContract,
    value: 10_000n,
    validBefore: (await chain.now()) + 60n,
  });
  const { from, value, validAfter, validBefore, nonce } = authorization;
  const settlement = encodeFunctionData({
    abi: x402FacilitatorAbi,
    functionName: "settle",
    args: [
      chain.asset.address,
      { from, value, validAfter, validBefore, nonce },
      tokenSignature(signature),
      harnessAccounts.recipient.address,
    ],
  });
  const wallet = unwrapErc6492(signature);
  const data =
    wallet === undefined
      ? settlement
      : encodeFunctionData({
          abi: x402FacilitatorAbi,
          functionName: "deployAndSettle",
          args: [from, wallet.factory, wallet.factoryCalldata, settlement],
        });
  const { address: operator } = harnessAccounts.operator;
  await chain.node.request("anvil_impersonateAccount", operator);
  const call = { from: operator, to: chain.facilitatorContract, data, gas: "0x4c4b40" };
  try {
    await chain.node.request("eth_call", call, "latest");
  } catch {
    return revertOf(chain, call);
  }
  const hash = await chain.node.request("eth_sendTransaction", call);
  await chain.mine();
  const receipt = await chain.node.request("eth_getTransactionReceipt", hash);
  return Reflect.get(Object(receipt), "status") === "0x1" ? "success" : "mined, and reverted";
}

async function revertOf(chain: HarnessChain, call: object): Promise<string> {
  const trace = await chain.node.request("debug_traceCall", call, "latest", { tracer: "callTracer" });
  const output = typeof trace === "object" && trace !== null ? Reflect.get(trace, "output") : undefined;
  if (!isHex(output)) return "reverted without data";
  try {
    const { errorName, args = [] } = decodeErrorResult({ abi: x402FacilitatorAbi, data: output });
    return `${errorName} ${args.join(" ")}`;
  } catch {
    return output;
  }
}

describe("the chains of all networks", () => {
  let chains: Chains;
  beforeAll(async () => {
    chains = await start({ networks: networkNames });
  });
  afterAll(async () => {
    await chains?.stop();
  });

  const chainOf = (name: NetworkName): HarnessChain => {
    const chain = chains.chains[name];
    if (chain === undefined) throw new Error(`${name} was not started`);
    return chain;
  };

  it("come in the order in which they were asked for, each on a node of its own", () => {
    expect(Object.keys(chains.chains)).toEqual([...networkNames]);
    expect(new Set(chains.pids).size).toBe(networkNames.length + 1);
  });

  // The published separators of the real tokens.
  it.each([
    ["base", "0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f"],
    ["base-sepolia", "0x71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818"],
    ["optimism", "0x26d9c34bb1a1c312f69c53b2d93b8be20faafba63af2438c6811713c9b1f933f"],
    ["optimism-sepolia", "0x09d038a3e46040fc37eb01174dbbcdb7981fbd8eafd9e1a857b1c67805dfb29e"],
    ["polygon", "0xcaa2ce1a5703ccbe253a34eb3166df60a705c561b44b192061e28f2a985be2ca"],
  ] as const)("%s: the token has the domain of the real USDC", async (name, separator) => {
    const chain = chainOf(name);
    const token = read(chain);
    expect(await token.client.getChainId()).toBe(networks[name].chainId);
    expect(chain.asset).toEqual(networks[name].usdc);
    expect(await token.domainSeparator()).toBe(separator);
    expect(await token.text("name")).toBe(networks[name].usdc.name);
    expect(await token.text("symbol")).toBe("USDC");
    expect(await token.text("version")).toBe("2");
  });

  it.each(networkNames)(
    "%s: the facilitator contract stands where it should, and knows its operator",
    async (name) => {
      const chain = chainOf(name);
      expect(chain.facilitatorContract).toBe(facilitatorContracts[networks[name].tier]);
      const contract = { address: chain.facilitatorContract, abi: x402FacilitatorAbi } as const;
      const { client } = read(chain);
      const role = await client.readContract({ ...contract, functionName: "OPERATOR_ROLE" });
      const { operator, admin } = harnessAccounts;
      expect(
        await client.readContract({ ...contract, functionName: "hasRole", args: [role, operator.address] }),
      ).toBe(true);
      expect(await client.readContract({ ...contract, functionName: "defaultAdmin" })).toBe(admin.address);
      expect(await client.getBalance({ address: operator.address })).toBe(10n ** 22n);
    },
  );

  it.each(networkNames)("%s: every test payer has the money and the code of its state", async (name) => {
    const { client, balanceOf, isBlacklisted } = read(chainOf(name));
    const code = (payer: TestPayerName) => client.getCode({ address: testPayers[payer].address });
    for (const payer of payerNames) {
      expect(await balanceOf(testPayers[payer].address), payer).toBe(payer === "empty" ? 0n : million);
      expect(await isBlacklisted(testPayers[payer].address), payer).toBe(payer === "blacklisted");
    }
    for (const payer of ["funded", "empty", "blacklisted", "undeployedWallet"] as const) {
      expect(await code(payer), payer).toBeUndefined();
    }
    expect(await code("delegated")).toMatch(/^0xef0100[0-9a-f]{40}$/);
    expect(await code("hijacked")).toMatch(/^0xef0100[0-9a-f]{40}$/);
    expect(await code("smartWallet")).toMatch(/^0x6080/);
    expect(await code("gasBurner")).toMatch(/^0x6080/);
    expect(await code("fickle")).toMatch(/^0x6080/);
  });

  it.each(networkNames)("%s: a permit of a test payer moves its tokens through Permit2", async (name) => {
    const { asset, network, node, ...chain } = chainOf(name);
    const token = read(chainOf(name));
    const { address: to } = harnessAccounts.recipient;
    const { address, privateKey } = testPayers.funded;
    const { permit, signature } = await signPermit(privateKeyToAccount(privateKey), {
      chainId: network.chainId,
      token: asset.address,
      amount: 10_000n,
      to,
      deadline: (await chain.now()) + 60n,
    });
    const before = await token.balanceOf(to);
    await node.request("eth_sendTransaction", {
      from: harnessAccounts.treasury.address,
      to: exactProxyAddress,
      data: encodeProxySettle(permit, signature, 10_000n),
      gas: "0x4c4b40",
    });
    await chain.mine();
    expect((await token.balanceOf(to)) - before).toBe(10_000n);
    const allowances = Object.entries<TestPayer>(testPayers).map(async ([payer, { address }]) => [
      payer,
      await token.allowance(address),
    ]);
    expect(Object.fromEntries(await Promise.all(allowances))).toEqual({
      ...Object.fromEntries(payerNames.map((payer) => [payer, 2n ** 256n - 1n])),
      unapproved: 0n,
      approvedShort: 1n,
      sponsored: 0n,
      funded: 2n ** 256n - 1n - 10_000n,
    });
    expect(address).toBe(permit.from);
  });

  it.each(networkNames)("%s: the test payers have the other tokens, approved as USDC is", async (name) => {
    const { client } = read(chainOf(name));
    for (const { address, decimals, ...token } of Object.values(localTokens)) {
      const ask = { address, abi: erc20Abi } as const;
      expect(await client.readContract({ ...ask, functionName: "name" })).toBe(token.name);
      expect(await client.readContract({ ...ask, functionName: "symbol" })).toBe(token.symbol);
      expect(await client.readContract({ ...ask, functionName: "decimals" })).toBe(decimals);
      const supply = BigInt(payerNames.length - 1) * million;
      expect(await client.readContract({ ...ask, functionName: "totalSupply" })).toBe(supply);
      for (const payer of payerNames) {
        const account = testPayers[payer].address;
        const balance = await client.readContract({ ...ask, functionName: "balanceOf", args: [account] });
        expect(balance, payer).toBe(payer === "empty" ? 0n : million);
        const args = [account, permit2Address] as const;
        const allowed = await client.readContract({ ...ask, functionName: "allowance", args });
        const { approved = 2n ** 256n - 1n }: Pick<TestPayer, "outcome"> & { approved?: bigint | string } =
          testPayers[payer];
        expect(allowed, payer).toBe(approved === "nothing" ? 0n : BigInt(approved));
      }
    }
  });

  it.each(networkNames)("%s: a payment of each test payer ends as its outcome says", async (name) => {
    const chain = chainOf(name);
    const { balanceOf } = read(chain);
    const { address: recipient } = harnessAccounts.recipient;
    const results: Record<string, string> = {};
    for (const payer of payerNames) {
      const before = await balanceOf(recipient);
      results[payer] = await settle(chain, payer);
      const { outcome, settleOutcome = outcome }: TestPayer = testPayers[payer];
      const succeeded = settleOutcome === "success";
      expect(await balanceOf(recipient), payer).toBe(before + (succeeded ? 10_000n : 0n));
    }
    expect(results).toMatchInlineSnapshot(`
      {
        "approvedShort": "success",
        "blacklisted": "Error Blacklistable: account is blacklisted",
        "delegated": "success",
        "empty": "Error ERC20: transfer amount exceeds balance",
        "fickle": "mined, and reverted",
        "funded": "success",
        "gasBurner": "Error FiatTokenV2: invalid signature",
        "hijacked": "Error FiatTokenV2: invalid signature",
        "smartWallet": "success",
        "sponsored": "success",
        "unapproved": "success",
        "undeployedWallet": "success",
      }
    `);
  });

  it("fund gives an account more, also when asked many times at once", async () => {
    const chain = chainOf("base");
    const account = getAddress("0x00000000000000000000000000000000000000a1");
    await Promise.all([1n, 20n, 300n, 4_000n, 50_000n].map((amount) => chain.fund(account, amount)));
    expect(await read(chain).balanceOf(account)).toBe(54_321n);
  });

  it("fund that fails says so, and the next one works", async () => {
    const chain = chainOf("polygon");
    await expect(chain.fund(`0x${"0".repeat(40)}`, 1n)).rejects.toThrow(
      "0x0000000000000000000000000000000000000000 cannot be given 1 more of the asset on polygon",
    );
    await chain.fund("0x00000000000000000000000000000000000000a1", 7n);
    expect(await read(chain).balanceOf("0x00000000000000000000000000000000000000a1")).toBe(7n);
  });

  it("setBalance and mine do what they say", async () => {
    const chain = chainOf("optimism");
    const { client } = read(chain);
    const account = "0x00000000000000000000000000000000000000a2";
    await chain.setBalance(account, 5n);
    expect(await client.getBalance({ address: account })).toBe(5n);
    const before = await client.getBlockNumber({ cacheTime: 0 });
    await chain.mine(10);
    expect(await client.getBlockNumber({ cacheTime: 0 })).toBeGreaterThanOrEqual(before + 10n);
  });

  it("time follows the clock while nothing happens, and does not run ahead while much does", async () => {
    const chain = chainOf("base");
    const before = await chain.now();
    await expect.poll(() => chain.now()).toBeGreaterThan(before + 1n);
    await expect.poll(async () => wallClock() - (await chain.now())).toBeLessThanOrEqual(2n);
    for (let block = 0; block < 50; block++) await chain.mine();
    expect((await chain.now()) - wallClock()).toBeLessThanOrEqual(1n);
  });

  it("time goes on after a snapshot that failed", async () => {
    const chain = chainOf("base");
    using batch = vi.spyOn(chain.node, "batch").mockRejectedValueOnce(new Error("no snapshot"));
    await expect(chain.mark()).rejects.toThrow("no snapshot");
    expect(batch).toHaveBeenCalledOnce();
    const before = await chain.now();
    await expect.poll(() => chain.now()).toBeGreaterThan(before + 1n);
  });

  it("time that is advanced is seen at once, by calls too, and goes on from there", async () => {
    const chain = chainOf("base-sepolia");
    const { client } = read(chain);
    const before = await chain.now();
    const advanced = await chain.advanceTime(3_600);
    expect(advanced).toBeGreaterThanOrEqual(before + 3_600n);
    expect(advanced).toBeLessThanOrEqual(wallClock() + 3_601n);
    // TIMESTAMP PUSH0 MSTORE PUSH1 32 PUSH0 RETURN: what a contract sees.
    const { data } = await client.call({ data: "0x425f5260205ff3" });
    expect(BigInt(data ?? 0)).toBeGreaterThanOrEqual(before + 3_600n);

    await chain.mine(3);
    await expect.poll(() => chain.now()).toBeGreaterThan(advanced + 1n);
    const lag = async () => wallClock() + 3_600n - (await chain.now());
    await expect.poll(lag).toBeLessThanOrEqual(2n);
    expect(await lag()).toBeGreaterThanOrEqual(-1n);

    // The other chains are where they were.
    expect((await chainOf("base").now()) - wallClock()).toBeLessThanOrEqual(1n);
  });

  it("time does not move backwards or by fractions", async () => {
    const chain = chainOf("base");
    await expect(chain.advanceTime(-1)).rejects.toThrow(
      "Time moves forward by 1 to 3155760000 whole seconds, not by -1",
    );
    await expect(chain.advanceTime(0.5)).rejects.toThrow("not by 0.5");
  });
});

describe("chains with settings of one's own", () => {
  it("take the contract, the token and the port where they are told to", async () => {
    const address = getAddress("0xabcdef0123456789abcdef0123456789abcdef01");
    const asset = {
      address: getAddress(`0x${"5".repeat(40)}`),
      name: "Own Dollar",
      version: "9",
      decimals: 18,
    };
    const port = await freePort();
    await using chains = await start({
      networks: ["base"],
      facilitatorContracts: { ...facilitatorContracts, mainnet: address },
      assets: { base: asset },
      rpcPorts: { base: port },
    });
    const chain = chains.chains.base;
    if (chain === undefined) throw new Error("base was not started");
    expect(chain.publicRpcUrl).toBe(`http://127.0.0.1:${port}`);
    expect(chain.facilitatorContract).toBe(address);
    expect(await read(chain).text("name")).toBe("Own Dollar");
    expect(await read(chain).balanceOf(testPayers.funded.address)).toBe(10n ** 24n);
    expect(await settle(chain, "smartWallet")).toBe("success");
  });
});

describe("chains that end", () => {
  it("leave no process when they are stopped, or go out of scope", async () => {
    let pids: readonly number[] = [];
    {
      await using chains = await start();
      ({ pids } = chains);
      expect(pids.filter(isRunning)).toHaveLength(3);
    }
    expect(await stillRunningAfter(pids, 0)).toEqual([]);
  });

  it("on their own are reported, with the network's name", async () => {
    await using chains = await start();
    const failure = new Promise<string>((resolve) => chains.onFailure(({ message }) => resolve(message)));
    process.kill(chains.chains.polygon?.node.pid ?? 0, "SIGKILL");
    expect(await failure).toBe("The polygon node ended unexpectedly, by SIGKILL");
  });
});

describe("chains that cannot start", () => {
  it("because a port is in use: one error, and nothing left of the others", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const error = await start({ rpcPorts: { polygon: port } }).catch((error: unknown) => error);
    expect(error).toMatchObject({
      message: `The polygon node cannot listen on port ${port}: it is in use`,
      hints: [
        "Choose another by --rpc-port or --rpc-ports (in a program, by the option rpcPorts), or none: a free one is found then.",
      ],
    });
    server.close();
  });

  it("for several reasons tell all of them in one error", async () => {
    const servers = [createServer().listen(0, "127.0.0.1"), createServer().listen(0, "127.0.0.1")];
    const ports = await Promise.all(
      servers.map(async (server) => {
        await once(server, "listening");
        const address = server.address();
        return typeof address === "object" && address !== null ? address.port : 0;
      }),
    );
    const [base = 0, polygon = 0] = ports;
    await expect(
      start({ networks: ["base", "optimism", "polygon"], rpcPorts: { base, polygon } }),
    ).rejects.toMatchObject({
      message: "2 of 3 chains did not start",
      hints: expect.arrayContaining([
        `The base node cannot listen on port ${base}: it is in use`,
        `The polygon node cannot listen on port ${polygon}: it is in use`,
      ]),
    });
    for (const server of servers) server.close();
  });

  it("because there is no binary: one error, not one per chain", async () => {
    await expect(start({ networks: networkNames, anvilBinary: "/nowhere/anvil" })).rejects.toThrow(
      "The anvil binary at /nowhere/anvil is missing or cannot be executed",
    );
  });

  it("because the start is given up", async () => {
    for (const delay of [0, 30, 80, 120]) {
      const controller = new AbortController();
      setTimeout(() => controller.abort(new Error("enough")), delay);
      const outcome = await start({ signal: controller.signal }).catch((error: unknown) => error);
      if (outcome instanceof Error) expect(outcome.message).toBe("enough");
      else await (outcome as Chains).stop();
    }
  });

  it("with impossible options: all problems at once", async () => {
    const options = {
      networks: ["base", "base"],
      rpcPorts: { base: 70_000, polygon: 8545, optimism: 8545 },
    } as const;
    const error = await start(options).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error).toMatchObject({ message: expect.any(String) });
    expect(String(error)).toMatchInlineSnapshot(`
      "ConfigurationError: networks: names base twice
      rpcPorts.base: 70000 is not a port (for example 8545)
      rpcPorts.optimism: is the same port as that of polygon"
    `);
    await expect(start({ networks: [] })).rejects.toThrow("names no network");
  });
});

describe.concurrent("whatever becomes of the process that started them, no node and no watchdog is left", () => {
  /** Starts chains in a process of its own, and gives it with the pids of what it has started. */
  async function startElsewhere(then: string): Promise<{ parent: ChildProcess; pids: number[] }> {
    const script = programFile("test/support/start-and-wait.ts");
    const parent = spawn(process.execPath, [script, then], {
      // A process group of its own, as a terminal gives to a command.
      detached: true,
      stdio: ["ignore", "pipe", "ignore"],
    });
    const pids = await nextLine(parent);
    if (!Array.isArray(pids)) throw new Error(`expected pids: ${pids}`);
    return { parent, pids: pids.map(Number) };
  }

  async function nextLine(parent: ChildProcess): Promise<unknown> {
    const [line] = await once(parent.stdout ?? parent, "data");
    return JSON.parse(String(line));
  }

  async function ended(parent: ChildProcess): Promise<void> {
    if (parent.exitCode === null && parent.signalCode === null) await once(parent, "exit");
  }

  it.each([
    ["kill -9", "wait", "SIGKILL"],
    ["SIGTERM", "wait", "SIGTERM"],
    ["SIGINT", "wait", "SIGINT"],
    ["an uncaught exception", "throw", undefined],
    ["an orderly stop", "stop", undefined],
  ] as const)("after %s", async (_what, then, signal) => {
    const { parent, pids } = await startElsewhere(then);
    expect(pids).toHaveLength(3);
    if (signal !== undefined) {
      expect(pids.filter(isRunning)).toHaveLength(3);
      parent.kill(signal);
    }
    await ended(parent);
    expect(await stillRunningAfter(pids)).toEqual([]);
  });

  it("Ctrl-C in a terminal, which reaches the whole process group, leaves the nodes to an orderly stop", async () => {
    const { parent, pids } = await startElsewhere("stop on SIGINT");
    const answers = nextLine(parent);
    process.kill(-(parent.pid ?? 0), "SIGINT");
    expect(await answers).toEqual(["0x2105", "0x89"]);
    await ended(parent);
    expect(await stillRunningAfter(pids)).toEqual([]);
  });
});

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return address.port;
}
