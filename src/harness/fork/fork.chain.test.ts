import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type RealChain, startRealChain } from "../../../test/support/real-chain.ts";
import { x402FacilitatorDeployedBytecode } from "../../contracts/x402Facilitator.ts";
import { type TestPayer, type TestPayerName, testPayers } from "../../payer/test-payers.ts";
import type { Address } from "../../protocol/hex.ts";
import { networks } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { connectHarness, createHarness } from "../api/create-harness.ts";
import type { Harness } from "../api/harness-api.ts";
import { payerBalances } from "../setup/test-accounts.ts";

const { usdc } = networks.base;
const stranger: Address = "0x00000000000000000000000000000000005717a6";

let directory: string;
let real: RealChain;
let recording: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "x402-kit-forks-"));
  recording = join(directory, "base.fork.json.gz");
  real = await startRealChain("base");
});
afterAll(async () => {
  await real.stop();
  await rm(directory, { recursive: true });
});

type BaseHarness = Harness<"base">;

/** The outcome of a payment of each test payer: the reason of its refusal, or that it settles. */
async function outcomes(harness: BaseHarness): Promise<Record<string, string | undefined>> {
  const found: Record<string, string | undefined> = {};
  for (const payer of Object.keys(testPayers) as TestPayerName[]) {
    const { verify, settle, receipt } = await harness.pay({ network: "base", payer });
    const { invalidReason } = verify.body as { invalidReason?: string };
    const { success, errorReason } = settle.body as { success: boolean; errorReason?: string };
    expect(receipt?.status).toBe(success ? "success" : undefined);
    found[payer] = success ? "success" : (invalidReason ?? errorReason);
  }
  return found;
}

const expectedOutcomes = Object.fromEntries(
  Object.entries(testPayers).map(([name, { outcome, settleOutcome = outcome }]: [string, TestPayer]) => [
    name,
    settleOutcome,
  ]),
);

describe("a fork of a real chain", () => {
  let harness: BaseHarness;
  let base: BaseHarness["networks"]["base"];
  beforeAll(async () => {
    const fork = { base: { url: real.node.rpcUrl, recordTo: recording } };
    harness = await createHarness({ networks: ["base"], fork });
    base = harness.networks.base;
  });
  afterAll(() => harness?.close());

  it("has the real token, with what others have of it", async () => {
    expect(base).toMatchObject({ chainId: 8453, asset: usdc });
    expect(base.fork).toEqual({ block: 3, from: "remote", hasBlacklist: true });
    expect(await base.balanceOf(real.holder)).toBe(real.held);
  });

  it("gives the test payers their balances, whatever they had", async () => {
    for (const [account, amount] of payerBalances(usdc)) expect(await base.balanceOf(account)).toBe(amount);
  });

  it("begins with a recipient that has been paid nothing, whatever strangers have sent there", async () => {
    expect(await base.balanceOf(harness.organization.recipient)).toBe(0n);
  });

  it("has nothing left of what others did to the addresses of test payers and contract", async () => {
    const { client, facilitatorContract } = base;
    const { funded, undeployedWallet } = testPayers;
    expect(await client.getCode({ address: funded.address })).toBeUndefined();
    expect(await client.getTransactionCount({ address: funded.address })).toBe(0);
    expect(await client.getBalance({ address: funded.address })).toBe(0n);
    expect(await client.getCode({ address: undeployedWallet.address })).toBeUndefined();
    const { address } = facilitatorContract;
    expect(await client.getCode({ address })).toBe(x402FacilitatorDeployedBytecode);
    expect(BigInt((await client.getStorageAt({ address, slot: "0xb" })) ?? 1)).toBe(0n);
  });

  it("is on the time of the clock", async () => {
    expect(Number(await base.now())).toBeGreaterThanOrEqual(Math.floor(Date.now() / 1000) - 5);
  });

  it("answers every test payer as an empty chain does", async () => {
    expect(await outcomes(harness)).toEqual(expectedOutcomes);
    expect(await base.balanceOf(harness.organization.recipient)).toBe(70_000n);
  });

  it("has a mock at the address of any other token", async () => {
    const address = "0x00000000000000000000000000000000000c0ffe";
    await using other = await createHarness({
      networks: ["base"],
      fork: { base: real.node.rpcUrl },
      assets: { base: { address } },
    });
    const { base: network } = other.networks;
    expect((await other.pay({ network: "base" })).settle.body).toMatchObject({ success: true });
    expect(await network.balanceOf(other.organization.recipient)).toBe(10_000n);
    const balance = await network.client.readContract({
      address: usdc.address,
      abi: network.asset.abi,
      functionName: "balanceOf",
      args: [real.holder],
    });
    expect(balance).toBe(real.held);
  });

  it("funds an account by a transfer, and takes it back at a reset", async () => {
    await base.fund(real.holder, 1n);
    expect(await base.balanceOf(real.holder)).toBe(real.held + 1n);
    await harness.reset();
    expect(await base.balanceOf(real.holder)).toBe(real.held);
    expect(await base.balanceOf(harness.organization.recipient)).toBe(0n);
    expect(await outcomes(harness)).toEqual(expectedOutcomes);
  });
});

describe("a fork whose token has no blacklist", () => {
  it("says so, instead of letting a blacklisted payer pay", async () => {
    await real.withoutBlacklist();
    await using harness = await createHarness({ networks: ["base"], fork: { base: real.node.rpcUrl } });
    expect(harness.networks.base.fork).toMatchObject({ hasBlacklist: false });
    await expect(harness.pay({ network: "base", payer: "blacklisted" })).rejects.toThrow(
      'The token of the fork of base has no blacklist: "blacklisted" pays as others do',
    );
    expect((await harness.pay({ network: "base" })).settle.body).toMatchObject({ success: true });
  });
});

describe("a recorded fork, of a chain that is gone", () => {
  let harness: BaseHarness;
  let base: BaseHarness["networks"]["base"];
  beforeAll(async () => {
    await real.stop();
    harness = await createHarness({ networks: ["base"], fork: { base: { recording } } });
    base = harness.networks.base;
  });
  afterAll(() => harness?.close());

  it("answers payments that are signed only now, also after a reset", async () => {
    expect(await outcomes(harness)).toEqual(expectedOutcomes);
    expect(await outcomes(harness)).toEqual(expectedOutcomes);
    await harness.reset();
    expect(await outcomes(harness)).toEqual(expectedOutcomes);
  });

  it("settles many payments at once", async () => {
    const payments = Array.from({ length: 10 }, () => harness.pay({ network: "base", x402Version: 2 }));
    for (const { settle } of await Promise.all(payments))
      expect(settle.body).toMatchObject({ success: true });
  });

  it("answers what was recorded", async () => {
    expect(await base.balanceOf(real.holder)).toBe(real.held);
  });

  it("refuses what was not recorded, to every caller, and says what that is", async () => {
    const missing =
      /has no answer to eth_getStorageAt \["0x833589fcd6edb6e08f4c7c32d4f71b54bda02913","0x[0-9a-f]+","0x[0-9a-f]+"\]/;
    await expect(base.balanceOf(stranger)).rejects.toThrow(missing);
    await expect(base.fund(stranger, 1n)).rejects.toThrow(missing);
    const payer = `0x${"42".repeat(32)}` as const;
    const elsewhere = await connectHarness(harness.facilitator.url, ["base"]);
    for (const asked of [harness, harness, elsewhere]) {
      const error = await asked.pay({ network: "base", payer }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(KitError);
      expect(error).toMatchObject({ message: expect.stringMatching(missing) });
    }
    // And goes on with what it has.
    expect((await harness.pay({ network: "base" })).settle.body).toMatchObject({ success: true });
  });

  it("knows no transaction but its own", async () => {
    const hash = `0x${"12".repeat(32)}` as const;
    await expect(base.client.getTransactionReceipt({ hash })).rejects.toThrow("could not be found");
    await expect(base.client.getTransaction({ hash })).rejects.toThrow("could not be found");
  });

  it("says that a recording of another release is to be made again, when it lacks what a start needs", async () => {
    const whole = JSON.parse(gunzipSync(await readFile(recording)).toString());
    const answers = whole.answers.filter(({ method }: { method: string }) => method !== "eth_getStorageAt");
    const path = join(directory, "old.json");
    await writeFile(path, JSON.stringify({ ...whole, kit: "0.0.1", answers }));
    const start = createHarness({ networks: ["base"], fork: { base: { recording: path } } });
    await expect(start).rejects.toMatchObject({
      message: `The recording ${path} lacks what the harness needs to start`,
      hints: [
        expect.stringMatching(/^Release 0\.0\.1 has written it; this is /),
        "Record it again: npx --no-install x402-kit fork record --network base --out FILE, with the RPC URL in the environment.",
      ],
    });
  });

  it("was recorded without any URL", async () => {
    const text = gunzipSync(await readFile(recording)).toString();
    expect(text).not.toContain("127.0.0.1");
    expect(JSON.parse(text)).toMatchObject({
      format: "x402-kit fork recording",
      version: 1,
      network: "base",
    });
  });
});
