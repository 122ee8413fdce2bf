import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { main } from "../../../src/cli/main.ts";
import { connectHarness, createHarness, type Harness } from "../../../src/harness/index.ts";

/* Faults as an integrator's tests use them, and the command line on a running harness. */

let harness: Harness<"base">;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"], settleWaitMs: 1_000 });
});
afterAll(() => harness?.close());
beforeEach(() => harness.reset());

const paid = async () => (await harness.pay({ network: "base" })).settle.body.success;

describe("harness.faults", () => {
  test("a broadcast whose answer is lost: the payment settles, and the recipient is paid once", async () => {
    await harness.faults.on("base", { method: "eth_sendRawTransaction*", nth: 2 }).answerLost();
    expect([await paid(), await paid()]).toEqual([true, true]);
    expect(await harness.faults.list()).toMatchObject([{ kind: "answer-lost", fired: 1 }]);
    expect(await harness.networks.base.balanceOf(harness.organization.recipient)).toBe(20_000n);
  });

  test("touch the service alone: the test's own client goes to the node", async () => {
    await harness.faults.on("base").status(500);
    expect((await harness.pay({ network: "base" })).verify.status).toBe(503);
    expect(await harness.networks.base.client.getChainId()).toBe(8453);
  });

  test("held blocks: the settle is pending, and succeeds when they are let go", async () => {
    const request = await harness.sign({ network: "base" });
    const held = await harness.faults.chain("base").holdBlocks();
    const pending = await harness.settle(request);
    expect(pending.status).toBe(503);
    expect(pending.headers["x-settlement-state"]).toBe("pending");
    await held.remove();
    expect((await harness.settle(request)).body.success).toBe(true);
  });

  test("are all cleared by reset, even where the service hangs on them", async () => {
    await harness.faults.on("base").hang();
    await harness.faults.chain("base").holdBlocks();
    await harness.faults.chain("base").emptyOperator();
    await harness.faults.chain("base").baseFee(10n ** 15n);
    const settling = harness.settle(await harness.sign({ network: "base" }));
    await expect.poll(async () => (await harness.faults.list())[0]?.fired).toBeGreaterThan(0);
    await harness.reset();
    await settling;
    expect(await harness.networks.base.balanceOf(harness.organization.recipient)).toBe(0n);
    expect(await harness.faults.list()).toEqual([]);
    expect(await paid()).toBe(true);
  });

  test("can be set and ended from another process", async () => {
    const other = await connectHarness(harness.facilitator.url);
    const fault = await other.faults.on("base", { method: "eth_call" }).error(-32_000, "header not found");
    const spike = await other.faults.chain("base").baseFee(123n);
    expect(await other.faults.list()).toEqual(await harness.faults.list());
    expect(await paid()).toBe(false);
    await fault.remove();
    await fault.remove();
    await spike.remove();
    expect(await paid()).toBe(true);
    await expect(other.faults.on("polygon").delay(0)).rejects.toThrow("ms: 0 is not a whole number");
  });

  test("of a harness that was closed are refused", async () => {
    const other = await connectHarness(harness.facilitator.url);
    await other.close();
    await expect(other.faults.on("base").reset()).rejects.toThrow("This harness was closed");
  });
});

describe("x402-kit fault", () => {
  /** Runs a command; gives what it printed and complained. */
  async function run(...args: string[]): Promise<string> {
    const lines: string[] = [];
    const terminal = {
      print: (text: string) => void lines.push(text),
      printError: (text: string) => void lines.push(text),
      env: { X402_KIT_URL: harness.facilitator.url },
      takeSignals: () => new AbortController().signal,
    };
    lines.push(`exit code ${await main(args, terminal)}`);
    return lines.join("\n").replaceAll(/(?<=--id )\d+|^ *\d+(?= {2}base)/gm, "N");
  }

  test("sets, lists and ends faults of a running harness", async () => {
    expect(await run("fault", "list")).toMatchInlineSnapshot(`
      "No fault is set.
      exit code 0"
    `);
    expect(
      await run("fault", "base", "error", "--method", "eth_*Receipt", "--code", "-32000", "--message", "no"),
    ).toMatchInlineSnapshot(`
      "base: error, method eth_*Receipt, code -32000, message no
      To end it: npx x402-kit fault clear --id N
      exit code 0"
    `);
    await run("fault", "base", "hold-blocks");
    expect(await run("fault", "base", "reorg", "--depth", "1")).toMatchInlineSnapshot(`
      "base: reorg, depth 1
      exit code 0"
    `);
    expect(await run("fault", "list")).toMatchInlineSnapshot(`
      "id  network  fault                                                hits
      ──  ───────  ───────────────────────────────────────────────────  ────
      N  base     error, method eth_*Receipt, code -32000, message no     0
      N  base     hold-blocks                                             1
      exit code 0"
    `);
    const [first] = await harness.faults.list();
    expect(await run("fault", "clear", "--id", `${first?.id}`)).toMatch(/has ended/);
    expect(await harness.faults.list()).toMatchObject([{ kind: "hold-blocks" }]);
    expect(await run("fault", "clear")).toMatchInlineSnapshot(`
      "No fault is set any more.
      exit code 0"
    `);
    expect(await harness.faults.list()).toEqual([]);
  });

  test("says everything that is wrong, by the names of the options", async () => {
    expect(await run("fault", "base", "delay", "--nth", "x", "--depth", "3")).toMatchInlineSnapshot(`
      "x402-kit fault: 3 things are wrong
        --nth: "x" is not a whole number from 1 to 1000000 (for example 2)
        --ms: is needed (for example 500)
        --depth: a fault of kind delay has none

      Options: x402-kit fault --help
      exit code 1"
    `);
    expect(await run("fault")).toMatchInlineSnapshot(`
      "x402-kit fault: 2 things are wrong
        NETWORK: is needed (for example base)
        KIND: is needed (for example answer-lost)

      Options: x402-kit fault --help
      exit code 1"
    `);
    expect(await run("fault", "polygon", "reset")).toMatchInlineSnapshot(`
      "x402-kit fault: polygon is not running there
        Running: base
      exit code 1"
    `);
    expect(await run("fault", "clear", "--id", "x")).toMatchInlineSnapshot(`
      "x402-kit fault clear: No fault x is set
        Those that are set: npx x402-kit fault list
      exit code 1"
    `);
  });
});
