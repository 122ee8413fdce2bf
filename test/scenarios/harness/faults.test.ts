import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  connectHarness,
  createHarness,
  type Harness,
  type PaymentRequestBody,
} from "../../../src/harness/index.ts";
import { problemsIn, runHere } from "../../support/run-here.ts";

/* Faults as an integrator's tests use them, and the command line on a running harness. */

let harness: Harness<"base">;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"], settleWaitMs: 1_000 });
});
afterAll(() => harness?.close());
beforeEach(() => harness.reset());

const paid = async () => (await harness.pay({ network: "base" })).settle.body.success;

describe("between a shop and the facilitator", () => {
  const settle = { operation: "settle", nth: 1 } as const;
  const paidAt = () => harness.networks.base.balanceOf(harness.organization.recipient);

  test("an answer is lost: the payment was settled, and sent again it is a success, once", async () => {
    const request = await harness.sign({ network: "base" });
    await harness.faults.onFacilitator(settle).answerLost();
    expect((await harness.verify(request)).body.isValid).toBe(true);
    await expect(harness.settle(request)).rejects.toThrow("No answer from");
    expect(await paidAt()).toBe(10_000n);
    expect((await harness.settle(request)).body.success).toBe(true);
    expect((await harness.settle(request)).body.success).toBe(false);
    expect(await paidAt()).toBe(10_000n);
    expect(await harness.faults.list()).toMatchObject([
      { network: "facilitator", method: "settle", fired: 1 },
    ]);
  });

  test("an answer is slow, and goes out at once where the fault is removed", async () => {
    const slow = await harness.faults.onFacilitator({ operation: "settle" }).delay(600_000);
    const settling = harness.settle(await harness.sign({ network: "base" }));
    await expect.poll(paidAt).toBe(10_000n);
    await slow.remove();
    expect((await settling).body.success).toBe(true);
  });

  test("a gateway answers, or nothing does: nothing is paid, and payments go through once the fault is over", async () => {
    const request = await harness.sign({ network: "base" });
    const { url } = harness.facilitator;
    const ask = () => fetch(`${url}/settle`, { method: "POST", body: JSON.stringify(request) });
    for (const status of [502, 503]) {
      await using _ = await harness.faults.onFacilitator().status(status);
      expect((await ask()).status).toBe(status);
      await expect(harness.settle(request)).rejects.toThrow(`has status ${status} and is not JSON`);
    }
    await using limited = await harness.faults.onFacilitator().rateLimited({ retryAfterSeconds: 7 });
    expect((await ask()).headers.get("retry-after")).toBe("7");
    await limited.remove();
    const gone = await harness.faults.onFacilitator().reset();
    await expect(harness.settle(request)).rejects.toThrow("No answer from");
    await gone.remove();
    const hung = await harness.faults.onFacilitator({ operation: "verify" }).hang();
    const verifying = expect(harness.verify(request)).rejects.toThrow("No answer from");
    await expect.poll(async () => (await harness.faults.list())[0]?.fired).toBe(1);
    await hung.remove();
    await verifying;
    expect(await paidAt()).toBe(0n);
    expect((await harness.settle(request)).body.success).toBe(true);
  });

  test("what happens to nodes alone is refused, and the command line sets the rest", async () => {
    const other = await connectHarness(harness.facilitator.url);
    const url = harness.facilitator.url.replace("/v1", "");
    const fault = (...args: string[]) => runHere(["fault", "facilitator", ...args, "--url", url]);
    expect(await fault("stale-head", "--blocks", "3")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("happens to nodes and chains, and not to the facilitator"),
    });
    expect(await fault("status", "--method", "settle", "--status", "503")).toMatchObject({ code: 0 });
    expect(await other.faults.list()).toMatchObject([
      { network: "facilitator", kind: "status", status: 503 },
    ]);
  });
});

/** The same payment, for twice the price or with a damaged signature: both are refused before a ledger is asked. */
function changesOf(request: PaymentRequestBody): readonly PaymentRequestBody[] {
  const text = JSON.stringify(request);
  return [
    text.replace(/"(maxAmountRequired|amount)":"10000"/g, '"$1":"20000"'),
    text.replace(/"signature":"0x..../, '"signature":"0x1111'),
  ].map((changed) => JSON.parse(changed));
}

describe.each([1, 2] as const)("a payment of version %i that comes again with other terms", (x402Version) => {
  async function expectNoNewSignature(request: PaymentRequestBody, nextAction: string, paymentState: string) {
    for (const changed of changesOf(request)) {
      for (const send of [harness.verify, harness.settle]) {
        const { body } = await send(changed);
        expect(body).toMatchObject({ nextAction, paymentState });
        expect(JSON.stringify(body)).toContain("An earlier request used this authorization");
      }
    }
  }

  test("is to be signed again only where nothing of it was taken", async () => {
    const unused = await harness.sign({ network: "base", x402Version });
    for (const changed of changesOf(unused)) {
      const again = { nextAction: "sign_again", paymentState: "not_taken" };
      expect((await harness.verify(changed)).body).toMatchObject(again);
      expect((await harness.settle(changed)).body).toMatchObject(again);
    }
    expect((await harness.settle(unused)).body.success).toBe(true);
    await expectNoNewSignature(unused, "give_up", "taken");
  });

  test("is polled for while its answer was lost, and while it is under way", async () => {
    const lost = await harness.sign({ network: "base", x402Version });
    await harness.faults.onFacilitator({ operation: "settle", nth: 1 }).answerLost();
    await expect(harness.settle(lost)).rejects.toThrow("No answer from");
    await expectNoNewSignature(lost, "poll", "in_flight");

    const pending = await harness.sign({ network: "base", x402Version });
    const held = await harness.faults.chain("base").holdBlocks();
    expect((await harness.settle(pending)).status).toBe(503);
    await expectNoNewSignature(pending, "poll", "in_flight");
    await held.remove();
  });
});

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

  test("blocks are replaced up to the first one, after however many resets", async () => {
    const { client } = harness.networks.base;
    for (let round = 0; round < 40; round++) {
      await harness.reset();
      const start = await client.getBlockNumber({ cacheTime: 0 });
      await client.mine({ blocks: 1 + (round % 4) });
      const depth = Number((await client.getBlockNumber({ cacheTime: 0 })) - start);
      await expect(
        client.request({ method: "anvil_reorg", params: [depth, []] } as never),
      ).resolves.toBeNull();
    }
    const { receipt } = await harness.pay({ network: "base" });
    const hash = receipt?.transactionHash ?? "0x";
    // Another block may have come since, and the service sends again what vanished.
    await using _ = await harness.faults.chain("base").holdBlocks();
    const head = await client.getBlockNumber({ cacheTime: 0 });
    await harness.faults.chain("base").reorg(Number(head - (receipt?.blockNumber ?? head)) + 1);
    await expect(client.getTransactionReceipt({ hash })).rejects.toThrow("could not be found");
  });

  test("blocks from before the start, a reset or a snapshot stay: resets and snapshots can still be put back", async () => {
    const { base } = harness.networks;
    const tooFew = (depth: number) =>
      expect(harness.faults.chain("base").reorg(depth)).rejects.toThrow(
        /^base has \d blocks? since its start, or the last reset or snapshot: too few for a reorganization of depth/,
      );
    expect(await paid()).toBe(true);
    await tooFew(10);
    await harness.reset();
    await base.mine(10);
    const snapshot = await harness.snapshot();
    expect(await paid()).toBe(true);
    await tooFew(5);
    await harness.faults.chain("base").reorg(1);
    await snapshot.restore();
    expect(await base.balanceOf(harness.organization.recipient)).toBe(0n);
    await base.mine();
    await harness.faults.chain("base").reorg(1);
    await harness.reset();
    expect(await paid()).toBe(true);
  });

  test("with a seed, a reorganization to a state that is forgotten says why", async () => {
    await using seeded = await createHarness({ networks: ["base"], seed: 1 });
    const goBack = async () => {
      for (let round = 0; round < 60; round++) {
        await seeded.reset();
        await seeded.networks.base.mine(1 + (round % 3));
        await seeded.faults.chain("base").reorg(1 + (round % 3));
      }
    };
    await expect(goBack()).rejects.toThrow(/^base cannot go back \d blocks?: its node has no state of then$/);
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
    const { code, stdout, stderr } = await runHere(args, { X402_KIT_URL: harness.facilitator.url });
    return `${stdout}${stderr}exit code ${code}`
      .replaceAll(/(?<=--id )\d+|^ *\d+(?= {2}base)/gm, "N")
      .replaceAll(/(?<=--url )\S+/g, "URL");
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
      To end it: npx --no-install x402-kit fault clear --id N --url URL
      exit code 0"
    `);
    await harness.networks.base.mine();
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
    const once = await harness.faults.onFacilitator({ times: 1 }).delay(1);
    await fetch(`${harness.facilitator.url}/supported`);
    expect(await run("fault", "list")).toMatch(/ facilitator +delay, times 1, ms 1 +1 \(used up\)$/m);
    expect(await harness.faults.list()).toMatchObject([{}, {}, { kind: "delay", fired: 1, usedUp: true }]);
    await once.remove();
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
    const delay = await run("fault", "base", "delay", "--nth", "x", "--depth", "3");
    expect(problemsIn(delay)).toEqual(["--nth", "--ms", "--depth"]);
    expect(delay).toMatch(/exit code 2$/);
    expect(problemsIn(await run("fault"))).toEqual(["NETWORK", "KIND"]);
    expect(await run("fault", "polygon", "reset")).toMatchInlineSnapshot(`
      "x402-kit fault: polygon is not running; running: base
      exit code 4"
    `);
    expect(await run("fault", "clear", "--id", "x")).toMatchInlineSnapshot(`
      "x402-kit fault clear: No fault x is set
        Those that are set: npx --no-install x402-kit fault list --url URL
      exit code 4"
    `);
  });
});
