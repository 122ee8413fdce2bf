import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalRpc } from "../../../src/chain/rpc/local-rpc.ts";
import {
  ConfigurationError,
  connectHarness,
  createHarness,
  type Harness,
  KitError,
} from "../../../src/harness/index.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { requestJson } from "../../../src/util/http-client.ts";
import { isRunning, stillRunningAfter } from "../../support/live-processes.ts";
import { commandOf, descendantsOf, noteStarted } from "../../support/processes.ts";
import { programFile } from "../../support/programs.ts";

/* One clear error each, and nothing left running. */

const noPayer = `The payer is neither a test payer (${Object.keys(testPayers).join(", ")}) nor a private key`;

/** The error that starting or using a harness in a wrong way throws. */
async function refusalOf(doing: Promise<unknown>): Promise<KitError> {
  const error: unknown = await doing.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (error instanceof KitError) return error;
  throw new Error(`this is no refusal: ${String(error)}`);
}

// Callers in JavaScript may pass any object.
const createWith = (options: object) => refusalOf(createHarness(options as never));

/** The processes that this one has started and not ended. */
const started = () => descendantsOf(process.pid);

test("everything that is wrong with the options is said at once", async () => {
  const startedMeanwhile = noteStarted();
  const error = await createWith({
    networks: ["bas", "base", "base"],
    contracts: { mainnet: "0x12", testnet: "0x036CbD53842c5426634e7929541eC2318f3dCF7e" },
    assets: { base: { address: "vitalik.eth" }, polygon: { address: "0x01" }, eth: {} },
    rpcPorts: { base: 0 },
    port: 70_000,
    host: "localhos",
    settleWaitMs: 1,
    seed: 0.5,
    logLevel: "loud",
    timeout: 3,
  });
  expect(error).toBeInstanceOf(ConfigurationError);
  expect(error.message).toMatchInlineSnapshot(`
    "timeout: is no option; there are networks, networkFile, contracts, assets, recipient, shop, organizations, fork, host, allowHosts, port, settleWaitMs, logLevel, payTo, reasons, recovery, journal, studio, seed, rpcPorts, anvilBinary, signal
    port: 70000 is not a whole number from 0 to 65535 (for example 4402)
    settleWaitMs: 1 is not a whole number from 100 to 600000 (for example 5000)
    logLevel: "loud" is not one of fatal, error, warn, info, debug, trace, silent
    seed: 0.5 is not a whole number (for example 1)
    networks: "bas" is not one of base, base-sepolia, optimism, optimism-sepolia, polygon
    networks: names base twice
    rpcPorts.base: 0 is not a port (for example 8545)
    host: "localhos" is not an IP address (for example 127.0.0.1)
    assets.base.address: vitalik.eth is not an address: 0x and 40 hexadecimal digits (for example 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913)
    assets.polygon: is not among the networks of this harness
    assets.eth: is not one of base, base-sepolia, optimism, optimism-sepolia, polygon
    contracts.mainnet: is not an address: 0x and 40 hexadecimal digits (for example 0xE09e2221cD864A64554e54D4E43adffb9aa9f8FE)
    contracts.testnet: is the address of the asset "USDC" (for example 0xf932d4A09C1A523804700724B54Fc4Ae7B5117e2)"
  `);
  expect(startedMeanwhile()).toEqual([]);
});

test.each([
  ["no networks", { networks: [] }, 'networks: names no network (for example ["base"])'],
  [
    "an asset where a payer is",
    { networks: ["base"], assets: { base: { address: "0x652026B65e32ffC7487F89D68D208977789a04d3" } } },
    "assets.base.address: is the address of the test payer funded (for example 0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913)",
  ],
  [
    "an asset with impossible decimals",
    { networks: ["base"], assets: { base: { address: `0x${"ab".repeat(20)}`, decimals: -1 } } },
    "assets.base.decimals: -1 is not a whole number from 0 to 36 (for example 6)",
  ],
  [
    "one contract for everything",
    { contracts: { mainnet: `0x${"ab".repeat(20)}`, testnet: `0x${"ab".repeat(20)}` } },
    /^contracts\.testnet: is the same address as contracts\.mainnet; mainnets and testnets need one each/,
  ],
  [
    "a port for a network that is not there",
    { networks: ["base"], rpcPorts: { polygon: 8545 } },
    "rpcPorts.polygon: is not among the networks of this harness",
  ],
  [
    "a missing anvil binary",
    { networks: ["base"], anvilBinary: "/nowhere/anvil" },
    "The anvil binary at /nowhere/anvil is missing or cannot be executed",
  ],
])("%s", async (_, options, message) => {
  const before = started();
  expect((await createWith(options)).message).toMatch(message);
  expect(await stillRunningAfter(started().filter((pid) => !before.includes(pid)))).toEqual([]);
});

test("a port in use, found out before anything is started", async () => {
  const startedMeanwhile = noteStarted();
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const { port } = other.address() as { port: number };
  const error = await createWith({ networks: ["base"], port });
  other.close();
  expect(error.message).toBe(`Port ${port} on 127.0.0.1 is in use`);
  expect(error.hints.join("\n")).toContain("0 is any free one");
  expect(startedMeanwhile()).toEqual([]);
});

test("of two that want the same port at the same time one says so, and leaves nothing", async () => {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  probe.close();
  await once(probe, "close");
  const before = started();
  const both = await Promise.allSettled([
    createHarness({ networks: ["base"], port }),
    createHarness({ networks: ["base"], port }),
  ]);
  for (const outcome of both) {
    if (outcome.status === "fulfilled") await outcome.value.close();
    else expect(outcome.reason).toMatchObject({ message: `Port ${port} on 127.0.0.1 is in use` });
  }
  expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(await stillRunningAfter(started().filter((pid) => !before.includes(pid)))).toEqual([]);
});

test("a start that is given up leaves nothing", async () => {
  const before = started();
  const controller = new AbortController();
  const starting = createHarness({ networks: ["base", "polygon"], signal: controller.signal });
  setTimeout(() => controller.abort(new Error("enough")), 30);
  await expect(starting).rejects.toThrow("enough");
  expect(await stillRunningAfter(started().filter((pid) => !before.includes(pid)))).toEqual([]);
});

describe("a running harness", () => {
  let harness: Harness<"base">;
  beforeAll(async () => {
    harness = await createHarness({ networks: ["base"] });
  });
  afterAll(() => harness?.close());

  const payWith = (payment: object) => refusalOf(harness.pay(payment as never));

  test.each([
    ["a network that is not there", { network: "polygon" }, "polygon is not running; running: base"],
    [
      "a negative amount",
      { network: "base", amount: -5n },
      'amount: -5n is not an amount: whole tokens as a text, or a bigint below 2^256 in the smallest unit (for example "0.01")',
    ],
    ["nobody", { network: "base", payer: "nobody" }, noPayer],
    ["a key outside the curve", { network: "base", payer: `0x${"ff".repeat(32)}` }, noPayer],
  ])("pay: %s", async (_, payment, message) => {
    expect((await payWith(payment)).message).toBe(message);
  });

  test.each([[0], [-1], [0.5], [Number.NaN], [2 ** 53]])("advanceTime(%d), mine(%d)", async (number) => {
    const { base } = harness.networks;
    expect((await refusalOf(base.advanceTime(number))).message).toBe(
      `Time moves forward by 1 to 3155760000 whole seconds, not by ${number}`,
    );
    expect((await refusalOf(base.mine(number))).message).toBe(
      `From 1 to 10000 blocks are mined at a time, not ${number}`,
    );
  });

  test("a mistyped account is not funded, in this process or over HTTP", async () => {
    const mistyped = "0x857b06519E91e3A54538791bDbb0E22373e36b67";
    const message = `The account "${mistyped}" has a wrong checksum (EIP-55): a digit may be mistyped`;
    expect((await refusalOf(harness.networks.base.fund(mistyped, 1n))).message).toBe(message);
    expect((await refusalOf(harness.networks.base.fund("0x12", 5n))).message).toBe(
      'The account "0x12" is not an address: 0x and 40 hexadecimal digits',
    );
    const { status, body } = await requestJson(`${harness.facilitator.url.replace("/v1", "")}/harness/fund`, {
      method: "POST",
      body: { network: "base", to: mistyped, amount: "1" },
    });
    expect({ status, body }).toMatchObject({ status: 400, body: { error: message } });
  });

  test("an amount that does not fit is invalid, and no error", async () => {
    const { verify, receipt } = await harness.pay({ network: "base", amount: 2n ** 256n - 1n });
    expect(verify.body).toMatchObject({ isValid: false, invalidReason: "insufficient_funds" });
    expect(receipt).toBeNull();
  });

  test("connecting to what is no harness, and to a network it lacks", async () => {
    const nothing = createServer().listen(0, "127.0.0.1");
    await once(nothing, "listening");
    const { port } = nothing.address() as { port: number };
    nothing.close();
    await once(nothing, "close");
    expect((await refusalOf(connectHarness(`http://127.0.0.1:${port}`))).message).toBe(
      `Nothing answers at http://127.0.0.1:${port}`,
    );
    expect((await refusalOf(connectHarness(harness.networks.base.rpcUrl))).message).toMatch(
      /^What answers at .* is not an x402-kit harness$/,
    );
    expect((await refusalOf(connectHarness(harness.facilitator.url, ["polygon"]))).message).toBe(
      "polygon is not running; running: base",
    );
  });
});

test("a harness that was closed says so, whatever is asked of it, and closing again does nothing", async () => {
  const harness = await createHarness({ networks: ["base"] });
  const { base } = harness.networks;
  const request = await harness.sign({ network: "base" });
  await Promise.all([harness.close(), harness.close()]);
  await harness[Symbol.asyncDispose]();
  const uses = [
    harness.pay({ network: "base" }),
    harness.sign({ network: "base" }),
    harness.verify(request),
    harness.settle(request),
    harness.reset(),
    base.fund(harness.organization.recipient, 1n),
    base.mine(),
    base.advanceTime(1),
    base.now(),
    base.balanceOf(harness.organization.recipient),
    base.client.getBlockNumber(),
  ];
  for (const use of uses) await expect(use).rejects.toThrow("This harness was closed");
});

test("a harness whose node was reset or has died cannot be reset, and says so; closing leaves nothing", async () => {
  const before = started();
  const harness = await createHarness({ networks: ["base", "polygon"] });
  const { base, polygon } = harness.networks;
  const own = started().filter((pid) => !before.includes(pid));
  await createLocalRpc(base.rpcUrl).request("anvil_reset");
  const { message, hints } = await refusalOf(harness.reset());
  expect(message).toBe("The base chain cannot be put back: its first snapshot is gone");
  expect(hints.join()).toContain("Start a new harness");

  const node = own.find((pid) => commandOf(pid).includes(`--chain-id ${polygon.chainId} `));
  process.kill(node ?? 0, "SIGKILL");
  expect((await refusalOf(polygon.mine())).message).toBe("The polygon node ended unexpectedly, by SIGKILL");
  await refusalOf(harness.reset());
  await harness.close();
  expect(await stillRunningAfter(own)).toEqual([]);
});

test("kill -9 of the process that created it leaves nothing", async () => {
  const script = programFile("test/support/harness/create-and-wait.ts");
  const child = spawn(process.execPath, [script], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  const pids = descendantsOf(child.pid ?? 0);
  expect(pids.length).toBeGreaterThanOrEqual(3);
  expect(pids.every(isRunning)).toBe(true);
  child.kill("SIGKILL");
  expect(await stillRunningAfter(pids)).toEqual([]);
});
