import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pay, postPayment, signPayment } from "../../../src/harness/control/pay.ts";
import { createHarness } from "../../../src/harness/index.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { type Capture, readCapture, replayCapture } from "../../../src/observe/capture/capture.ts";
import { paymentListSchema } from "../../../src/observe/timeline/payment-view.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { runCli } from "../../support/cli.ts";
import { runHere } from "../../support/run-here.ts";
import { post, signedRequest, startTestHarness } from "../../support/service.ts";

/*
 * A payment as a file: what was decided about it is decided again, from the file alone.
 */

let harness: RunningHarness;
let origin: string;
let folder: string;
beforeAll(async () => {
  harness = await startTestHarness({ networks: ["base"], studio: true });
  origin = harness.description.facilitator.url.replace(/\/v1$/, "");
  folder = await mkdtemp(join(tmpdir(), "x402-capture-"));
});
afterAll(async () => {
  await harness?.close();
  await rm(folder, { recursive: true, force: true });
});

async function captureNewest(at = origin): Promise<string> {
  const { payments } = paymentListSchema.parse(await (await fetch(`${at}/payments?limit=1`)).json());
  const response = await fetch(`${at}/payments/${payments[0]?.id}/capture`, { method: "POST" });
  expect(response.status).toBe(200);
  return response.text();
}

describe("a captured payment is judged again as it was", () => {
  test.each([
    ["funded", "valid"],
    ["smartWallet", "valid"],
    ["delegated", "valid"],
    ["empty", "insufficient_funds"],
    ["blacklisted", "invalid_transaction_state"],
    ["hijacked", "invalid_exact_evm_payload_signature"],
    ["gasBurner", "invalid_exact_evm_payload_signature"],
    ["undeployedWallet", "valid"],
  ] as const)("of the payer %s: %s", async (payer, verdict) => {
    await pay(harness.description, { network: "base", payer });
    const capture = readCapture(await captureNewest());
    expect(await replayCapture(capture)).toMatchObject({ verdict, same: true, recorded: verdict });
  });

  test.each([
    ["funded", {}, "valid"],
    ["smartWallet", {}, "valid"],
    ["unapproved", {}, "permit2_allowance_required"],
    ["empty", {}, "permit2_insufficient_balance"],
    ["funded", { permit: { deadline: 1n } }, "permit2_deadline_expired"],
    ["funded", { scheme: "upto", max: 20_000n }, "valid"],
    ["approvedShort", { scheme: "upto", max: 20_000n }, "permit2_allowance_required"],
  ] as const)("of the payer %s by Permit2, %o: %s", async (payer, options, verdict) => {
    await pay(harness.description, { network: "base", method: "permit2", payer, ...options });
    const capture = readCapture(await captureNewest());
    expect(await replayCapture(capture)).toMatchObject({ verdict, same: true, recorded: verdict });
    await using again = await createHarness({ capture });
    expect((await again.captured.replay()).verdict).toBe(verdict);
  });

  test("whatever was wrong with it: time, contract, value, signature", async () => {
    const { usdc } = networks.base;
    for (const change of [
      { validBefore: -5 },
      { terms: { to: testPayers.empty.address } },
      { terms: { value: 9_999n } },
      { terms: { asset: { ...usdc, version: "1" } } },
    ]) {
      await post(harness, "verify", await signedRequest(harness, change));
      const capture = readCapture(await captureNewest());
      const { verdict, same } = await replayCapture(capture);
      expect(verdict).toMatch(/^invalid_exact_evm_payload_/);
      expect(same).toBe(true);
    }
  });
});

test.each([
  ["any", "valid", "valid"],
  ["recipients", "valid", "invalid_payment_requirements"],
] as const)(
  "one that goes straight to a wallet, where %s may be paid so, is judged again as it was",
  async (payTo, own, foreign) => {
    await using straight = await startTestHarness({ networks: ["base"], studio: true, payTo });
    const at = new URL(straight.description.facilitator.url).origin;
    for (const [to, verdict] of [
      [straight.description.organization.recipient, own],
      [testPayers.smartWallet.address, foreign],
    ] as const) {
      await pay(straight.description, { network: "base", payTo: to });
      const capture = readCapture(await captureNewest(at));
      expect(capture.chain.mayGoStraight).toBe(verdict === "valid");
      expect(await replayCapture(capture)).toMatchObject({ verdict, same: true });
      await using again = await createHarness({ capture });
      expect((await again.captured.replay()).verdict).toBe(verdict);
    }
  },
);

describe("a payment is captured as it was judged, although since then", () => {
  const payers = ["funded", "empty", "blacklisted", "smartWallet"] as const;
  const capturedAll = async () => {
    const { payments } = paymentListSchema.parse(await (await fetch(`${origin}/payments?limit=50`)).json());
    return Promise.all(
      payments.map(async ({ id, payerName }) => {
        const response = await fetch(`${origin}/payments/${id}/capture`, { method: "POST" });
        const text = await response.text();
        expect([response.status, text]).toEqual([200, text]);
        const capture = readCapture(text);
        return { payerName, capture, replay: await replayCapture(capture) };
      }),
    );
  };

  test("hundreds of blocks were mined, whose states the node keeps no longer, and balances have changed", async () => {
    await harness.reset();
    for (const payer of payers) await pay(harness.description, { network: "base", payer, amount: 500n });
    await harness.chains.base?.fund(testPayers.empty.address, 700n);
    await pay(harness.description, { network: "base", payer: "empty", amount: 300n });
    await harness.chains.base?.mine(300);
    await harness.chains.base?.fund(testPayers.empty.address, 9_000n);
    await harness.chains.base?.mine(100);
    const captured = await capturedAll();
    expect(captured.map(({ replay }) => replay.same)).toEqual(Array(5).fill(true));
    const ofEmpty = captured.filter(({ payerName }) => payerName === "empty");
    expect(ofEmpty.map(({ capture }) => capture.chain.payerBalance)).toEqual(["700", "0"]);
  });

  test("the chain's time has left this machine's", async () => {
    await harness.reset();
    await harness.chains.base?.advanceTime(7_200);
    await post(harness, "verify", await signedRequest(harness, { validBefore: -5 }));
    await post(harness, "verify", await signedRequest(harness));
    await harness.chains.base?.advanceTime(7_200);
    await post(harness, "verify", await signedRequest(harness, { validAfter: 60 }));
    const captured = await capturedAll();
    expect(captured.map(({ replay: { verdict, same } }) => [verdict, same])).toEqual([
      ["invalid_exact_evm_payload_authorization_valid_after", true],
      ["valid", true],
      ["invalid_exact_evm_payload_authorization_valid_before", true],
    ]);
  });

  test("it was sent a second time, which is refused", async () => {
    await harness.reset();
    const body = await signedRequest(harness);
    await post(harness, "settle", body);
    await post(harness, "settle", body);
    const [captured] = await capturedAll();
    expect(captured?.replay).toMatchObject({ verdict: "invalid_transaction_state", same: true });
  });
});

describe("a harness that is made of a captured payment", () => {
  test.each([
    ["funded", "valid"],
    ["smartWallet", "valid"],
    ["empty", "insufficient_funds"],
    ["blacklisted", "invalid_transaction_state"],
    ["hijacked", "invalid_exact_evm_payload_signature"],
  ] as const)("judges it as then: of the payer %s, %s", async (payer, verdict) => {
    await pay(harness.description, { network: "base", payer });
    const file = join(folder, `${payer}.json`);
    await writeFile(file, await captureNewest());
    const { chain } = readCapture(await readFile(file, "utf8"));
    await using again = await createHarness({ capture: file });
    const { client, now } = again.networks.base;
    expect(await now()).toBe(BigInt(chain.time));
    expect(await client.getBlockNumber()).toBe(BigInt(chain.blockNumber));
    expect(again.captured).toMatchObject({ operation: "settle", verdict });
    expect(await again.captured.replay()).toMatchObject({ verdict });
    await again.reset();
    expect(await now()).toBe(BigInt(chain.time));
    expect(await again.captured.replay()).toMatchObject({ verdict });
  });

  test("holds the state of a payer, a token and a contract that are not those of the test cast", async () => {
    const facilitatorContract = "0x00000000000000000000000000000000000f00d1";
    const body = await signedRequest(harness, { payer: "empty", terms: { to: facilitatorContract } });
    await post(harness, "verify", body);
    const capture: Capture = JSON.parse(await captureNewest());
    Object.assign(Object(capture.request.paymentRequirements), { payTo: facilitatorContract });
    Object.assign(capture.chain, { facilitatorContract, blockNumber: 43_000_000 });
    const judged = async (change: Partial<Capture["chain"]>) => {
      const changed = { ...capture, chain: { ...capture.chain, ...change } };
      await using again = await createHarness({ capture: changed, networks: ["base"] });
      const { verdict, answer } = await again.captured.replay();
      expect((await replayCapture(changed)).verdict).toBe(verdict);
      expect(again.networks.base.facilitatorContract.address.toLowerCase()).toBe(facilitatorContract);
      return [verdict, Reflect.get(answer.body, "invalidMessage")];
    };
    const rich = { payerBalance: "1000000000" };
    expect(await judged(rich)).toEqual(["valid", undefined]);
    expect((await judged({}))[0]).toBe("insufficient_funds");
    expect((await judged({ ...rich, authorizationUsed: true }))[1]).toMatch(/used/);
    expect((await judged({ ...rich, assetPaused: true }))[1]).toMatch(/paused/);
    expect((await judged({ ...rich, payerBlacklisted: true }))[1]).toMatch(/blacklisted/);
    expect((await judged({ ...rich, time: capture.chain.time + 3_600 }))[0]).toBe(
      "invalid_exact_evm_payload_authorization_valid_before",
    );
  });

  test("takes nothing beside it that the capture brings along, and no damaged file", async () => {
    await pay(harness.description, { network: "base" });
    const capture: Capture = JSON.parse(await captureNewest());
    await expect(
      createHarness<string>({ capture, networks: ["polygon"], seed: 1, journal: false }),
    ).rejects.toThrow(/networks.*base.*journal.*seed/s);
    await expect(createHarness({ capture: join(folder, "missing.json") })).rejects.toThrow("cannot be read");
    await writeFile(join(folder, "cut.json"), JSON.stringify(capture).slice(0, 300));
    await expect(createHarness({ capture: join(folder, "cut.json") })).rejects.toThrow("it is cut off");
  });
});

test("the file holds no key, and the command line writes and replays it without the chain", async () => {
  await pay(harness.description, { network: "base" });
  const file = join(folder, "bug.x402.json");
  const written = await runHere(["capture", "last", "--out", file, "--url", origin]);
  const toReplay = `Judge it again, on any machine: npx --no-install x402-kit replay ${file}\n`;
  expect(written.stdout).toBe(`Wrote ${file}. ${toReplay}`);
  const again = await runHere(["capture", "last", "--out", file, "--url", origin]);
  expect(again.stdout).toBe(`Wrote ${file} in the place of an earlier one. ${toReplay}`);
  // A test payer's key is published anyway.
  expect([written.stderr, readCapture(await readFile(file, "utf8")).signature]).toEqual(["", "kept"]);
  const text = await captureNewest();
  expect(text).not.toContain(harness.description.organization.apiKey);
  for (const { privateKey } of Object.values(testPayers)) expect(text).not.toContain(privateKey.slice(2));
  const explained = await runHere(["explain", file]);
  expect(explained.stderr).toContain(`npx --no-install x402-kit replay ${file} judges it again.`);
  const replayed = await runHere(["replay", file]);
  expect(replayed.stdout).toMatch(/ok {7}signatureHolds.*Then: settled\nNow: {2}valid\nThe same\./s);
  expect(replayed.code).toBe(0);
  // A file of somebody else's may hold what a terminal would obey.
  const hostile = `${file}.hostile`;
  await writeFile(hostile, (await readFile(file, "utf8")).replaceAll('"base"', '"base\\u001b[2J\\u202e"'));
  const { stdout, stderr } = await runHere(["replay", hostile]);
  expect(stdout + stderr).toContain("\\u001b[2J");
  expect(stdout + stderr).not.toContain("\u001b");
  expect(stdout + stderr).not.toContain("\u202e");
});

test("the signature of a wallet leaves only if it is asked for, in a file that its owner alone may read", async () => {
  // Local chains have the ids and tokens of real ones.
  const payer = `0x${randomBytes(32).toString("hex")}` as const;
  const { request, payment } = await signPayment(harness.description, { network: "base", payer });
  await harness.chains.base?.fund(payment.payer, 10_000n);
  expect((await postPayment(harness.description, "settle", request)).body).toMatchObject({ success: true });
  const signature = /"signature":"0x([0-9a-f]{130})"/.exec(JSON.stringify(request))?.[1] ?? "none";
  const file = join(folder, "wallet.x402.json");
  await writeFile(file, "readable to all before", { mode: 0o644 });
  const captured = async (...args: string[]) => {
    const { stderr, code } = await runHere(["capture", "last", "--out", file, "--url", origin, ...args]);
    expect([code, (await stat(file)).mode & 0o777]).toEqual([0, 0o600]);
    const text = await readFile(file, "utf8");
    expect(await replayCapture(readCapture(text))).toMatchObject({ verdict: "valid", same: true });
    return { stderr, text };
  };

  const usual = await captured();
  expect(usual.text).not.toContain(signature);
  expect(usual.stderr).toContain("Without the signature");
  expect(usual.stderr).toContain("--keep-signature");
  expect(await captureNewest()).not.toContain(signature);
  await using again = await createHarness({ capture: file });
  expect(await again.captured.replay()).toMatchObject({
    verdict: "valid",
    answer: { body: { success: true } },
  });

  const kept = await captured("--keep-signature");
  expect(kept.text).toContain(signature);
  expect(kept.stderr).toMatch(
    /^Warning: the file has the payer's signature. It is valid on the real base too/,
  );

  const { payments } = paymentListSchema.parse(await (await fetch(`${origin}/payments?limit=1`)).json());
  const wrong = await fetch(`${origin}/payments/${payments[0]?.id}/capture`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"keepSignature":"no"}',
  });
  expect(wrong.status).toBe(400);
});

test("a capture is replayed where there is no network at all, and its chain is gone", async () => {
  const file = join(folder, "offline.x402.json");
  const cut = join(folder, "cut-network.mjs");
  await using ended = await startTestHarness({ networks: ["base"], studio: true });
  const at = ended.description.facilitator.url.replace(/\/v1$/, "");
  await pay(ended.description, { network: "base", payer: "smartWallet" });
  expect((await runHere(["capture", "last", "--out", file, "--url", at])).code).toBe(0);
  // Fetch included: all connections of the process begin there.
  await writeFile(
    cut,
    `import { writeSync } from "node:fs";
import { Socket } from "node:net";
import dns from "node:dns";
const refuse = () => {
  writeSync(2, "NETWORK USED\\n");
  throw new Error("there is no network");
};
Socket.prototype.connect = refuse;
dns.lookup = refuse;
globalThis.fetch = refuse;
`,
  );
  const cutOff = { NODE_OPTIONS: `--import=${cut}` };
  // What needs a network notices that there is none.
  expect((await runCli(["why", "last", "--url", at], cutOff)).stderr).toContain("NETWORK USED");
  await ended.close();
  await expect(fetch(at)).rejects.toThrow();
  const { code, stdout, stderr } = await runCli(["replay", file], cutOff);
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toMatch(/Then: settled\nNow: {2}valid\nThe same\./);
});

test("an edited file says that it differs; a damaged, foreign or newer one says so in a sentence", async () => {
  await pay(harness.description, { network: "base", payer: "empty" });
  const text = await captureNewest();
  const richer = JSON.parse(text);
  richer.chain.payerBalance = "1000000";
  expect(await replayCapture(readCapture(JSON.stringify(richer)))).toMatchObject({
    verdict: "valid",
    same: false,
  });
  const said = async (content: string) => {
    const file = join(folder, "other.json");
    await writeFile(file, content);
    return (await runHere(["replay", file])).stderr.split("\n")[0];
  };
  expect(await said(text.slice(0, 200))).toContain("it is not JSON, or it is cut off");
  expect(await said('{"log":{"version":"1.2"}}')).toContain("no capture of x402-kit");
  expect(await said(text.replace('"x402Capture":1', '"x402Capture":2'))).toContain("this x402-kit reads 1");
  expect(await said(text.replace('"operation":', '"operations":'))).toContain(
    "The capture is damaged at operation",
  );
  for (const [whole, damage, place] of [
    [/"time":\d+/, '"time":-5', "chain.time"],
    [/"blockNumber":\d+/, '"blockNumber":-1', "chain.blockNumber"],
    [/"decimals":6/, '"decimals":-3', "chain.asset.decimals"],
  ] as const) {
    expect(await said(text.replace(whole, damage))).toMatch(
      new RegExp(`The capture is damaged at ${place}$`),
    );
  }
});
