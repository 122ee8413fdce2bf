import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readCapture } from "../../../src/capture/capture.ts";
import { replayCapture } from "../../../src/capture/replay.ts";
import { pay } from "../../../src/harness/control/pay.ts";
import type { RunningHarness } from "../../../src/harness/run/running-harness.ts";
import { networks } from "../../../src/protocol/networks.ts";
import { testPayers } from "../../../src/published/test-payers.ts";
import { paymentListSchema } from "../../../src/studio/payment-view.ts";
import { runCli } from "../../support/cli.ts";
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

async function captureNewest(): Promise<string> {
  const { payments } = paymentListSchema.parse(await (await fetch(`${origin}/payments?limit=1`)).json());
  const response = await fetch(`${origin}/payments/${payments[0]?.id}/capture`, { method: "POST" });
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
    ["undeployedWallet", "invalid_exact_evm_payload_undeployed_smart_wallet"],
  ] as const)("of the payer %s: %s", async (payer, verdict) => {
    await pay(harness.description, { network: "base", payer });
    const capture = readCapture(await captureNewest());
    expect(await replayCapture(capture)).toMatchObject({ verdict, same: true, recorded: verdict });
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

test("the file holds no key, and the command line writes and replays it without the chain", async () => {
  await pay(harness.description, { network: "base" });
  const file = join(folder, "bug.x402.json");
  const written = await runCli(["capture", "last", "--out", file, "--url", origin]);
  expect(written.stdout).toContain(`npx x402-kit replay ${file}`);
  const text = await captureNewest();
  expect(text).not.toContain(harness.description.organization.apiKey);
  for (const { privateKey } of Object.values(testPayers)) expect(text).not.toContain(privateKey.slice(2));
  const replayed = await runCli(["replay", file]);
  expect(replayed.stdout).toMatch(/ok {7}signatureHolds.*Then: settled\nNow: {2}valid\nThe same\./s);
  expect(replayed.code).toBe(0);
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
    return (await runCli(["replay", file])).stderr.split("\n")[0];
  };
  expect(await said(text.slice(0, 200))).toContain("it is not JSON, or it is cut off");
  expect(await said('{"log":{"version":"1.2"}}')).toContain("no capture of x402-kit");
  expect(await said(text.replace('"x402Capture":1', '"x402Capture":2'))).toContain("this x402-kit reads 1");
  expect(await said(text.replace('"operation":', '"operations":'))).toContain("The capture is damaged");
});
