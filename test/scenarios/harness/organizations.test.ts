import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { connectHarness, createHarness, type Harness } from "../../../src/harness/index.ts";
import { testKeys } from "../../../src/payer/test-keys.ts";
import { startCli } from "../../support/cli.ts";

/* Organizations of a test's own, with the limits that production has. */

const ours = "0x00000000000000000000000000000000C0FFeE10";
const acme = "0x00000000000000000000000000000000c0ffee11";
const acmeOnPolygon = "0x00000000000000000000000000000000c0ffee12";

describe("organizations of the options", () => {
  let harness: Harness<"base" | "polygon">;
  beforeAll(async () => {
    harness = await createHarness({
      networks: ["base", "polygon"],
      recipient: ours,
      organizations: [
        {
          id: "acme",
          name: "Acme & Sons",
          recipient: acme,
          minimumAmount: 5_000n,
          networks: { polygon: { recipient: acmeOnPolygon, minimumAmount: "20000" } },
        },
        { id: "frugal", recipient: acme, dailyGasBudget: 1n },
        { id: "plain", recipient: acme, networks: { base: { refusePayersWithCode: true } } },
        { id: "unpaid" },
        { id: "reader", recipient: acme, scopes: ["verify"] },
      ],
    });
  });
  afterAll(() => harness?.close());
  beforeEach(() => harness.reset());

  test("are paid where they said, on every network or on one, after a reset too", async () => {
    const { settle } = await harness.as("acme").pay({ network: "base", amount: 5_000n });
    expect(settle.body).toMatchObject({ success: true });
    expect(await harness.networks.base.balanceOf(acme)).toBe(5_000n);
    await harness.as("acme").pay({ network: "polygon", amount: 20_000n });
    expect(await harness.networks.polygon.balanceOf(acmeOnPolygon)).toBe(20_000n);
    await harness.pay({ network: "base" });
    expect([harness.organization.recipient, await harness.networks.base.balanceOf(ours)]).toEqual([
      ours,
      10_000n,
    ]);
  });

  test("have limits, scopes and API keys as in production", async () => {
    const least = await harness.as("acme").pay({ network: "polygon", amount: 19_999n });
    expect(least.verify.body).toMatchObject({ isValid: false });
    expect(least.settle.body).toMatchObject({
      success: false,
      errorReason: "invalid_payment_requirements",
    });
    expect((await harness.as("frugal").pay({ network: "base" })).settle.status).toBe(429);
    expect((await harness.as("unpaid").pay({ network: "base" })).settle.status).toBe(403);
    const read = await harness.as("reader").pay({ network: "base" });
    expect([read.verify.status, read.settle.status]).toEqual([200, 403]);
    const { facilitator } = harness.as("acme").shopConfig("base", 1n);
    expect((await facilitator.createAuthHeaders()).settle.Authorization).toBe(
      `Bearer ${harness.as("acme").apiKey}`,
    );
  });

  test.each([1, 2] as const)(
    "may refuse payers with code, on one network (version %i)",
    async (x402Version) => {
      const plain = harness.as("plain");
      for (const payer of ["smartWallet", "delegated", "fickle"] as const) {
        const { verify, settle } = await plain.pay({ network: "base", payer, x402Version });
        const step = { nextAction: "sign_again", paymentState: "not_taken" };
        expect(verify.body).toMatchObject({
          isValid: false,
          invalidReason: "invalid_exact_evm_payload_signature",
          ...step,
        });
        expect(settle.body).toMatchObject({
          success: false,
          errorReason: x402Version === 1 ? "invalid_payload" : "invalid_exact_evm_payload_signature",
          errorMessage: expect.stringContaining("Pay from a plain account"),
          ...step,
        });
      }
      expect((await plain.pay({ network: "base", x402Version })).settle.body).toMatchObject({
        success: true,
      });
      const elsewhere = await plain.pay({ network: "polygon", payer: "smartWallet", x402Version });
      expect(elsewhere.settle.body).toMatchObject({ success: true });
      const accepting = await harness.pay({ network: "base", payer: "smartWallet", x402Version });
      expect(accepting.settle.body).toMatchObject({ success: true });
    },
  );

  test("are found from another process, and published keys speak as they stand for", async () => {
    const connected = await connectHarness(harness.facilitator.url, ["base"]);
    expect((await connected.as("acme").pay({ network: "base" })).settle.body.success).toBe(true);
    expect((await connected.as("org_local").pay({ network: "base" })).settle.body.success).toBe(true);
    const { verify } = await connected.as(testKeys.minimumAmount.apiKey).pay({ network: "base" });
    expect(verify.body.isValid).toBe(false);
    expect(() => connected.as("nobody")).toThrow('This harness has no organization "nobody"');
  });
});

test("are paid straight where payments may go to them, also where a test leaves that undefined", async () => {
  const organizations = [{ id: "acme", recipient: acme } as const];
  await using harness = await createHarness({ networks: ["base"], organizations, payTo: "any" });
  const { settle } = await harness.as("acme").pay({ network: "base", payTo: undefined });
  expect(settle.body).toMatchObject({ success: true });
  expect(await harness.networks.base.balanceOf(acme)).toBe(10_000n);
});

test("what is wrong with them is said before anything starts, or names the one that cannot be paid", async () => {
  const given = {
    networks: ["base"] as const,
    recipient: "0x12" as const,
    organizations: [
      { id: "a_b", minimumAmount: "0x10" },
      { id: "local", recipient: "vitalik.eth" },
    ],
  };
  await expect(createHarness(given)).rejects.toThrowErrorMatchingInlineSnapshot(`
    [ConfigurationError: recipient: 0x12 is not an address: 0x and 40 hexadecimal digits
    organizations: [0].id: must be 1 to 32 letters and digits: it is part of the API key; [0].minimumAmount: must be whole units as digits, such as "10000", not "0x10"; [1].id: is that of a published test key: choose another; [1].recipient: is not an address: 0x and 40 hexadecimal digits]
  `);
  const twice = [{ id: "a" }, { id: "a" }];
  await expect(createHarness({ networks: ["base"], organizations: twice })).rejects.toThrow(
    "organizations: names the organization a twice",
  );
  const elsewhere = [{ id: "a", networks: { polygon: {} } }];
  await expect(createHarness({ networks: ["base"], organizations: elsewhere })).rejects.toThrow(
    "organizations: a: polygon is not started; started: base",
  );
  const usdc = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
  await expect(createHarness({ networks: ["base"], recipient: usdc })).rejects.toThrow(
    `The recipient "${usdc}" is`,
  );
});

test("`up --recipient` and `--organizations FILE` do the same", async () => {
  const folder = await mkdtemp(join(tmpdir(), "x402-kit-organizations-"));
  const file = join(folder, "organizations.json");
  await writeFile(file, JSON.stringify([{ id: "acme", recipient: acme, minimumAmount: "5000" }]));
  try {
    const args = ["up", "--networks", "base", "--port", "0", "--no-demo"];
    await using up = await startCli([...args, "--recipient", ours, "--organizations", file]);
    const [, url = ""] = await up.printed(/Facilitator {3}(\S+)/);
    await up.printed(/paid at {7}0x00000000000000000000000000000000C0FFeE10 /);
    await up.printed(/Key of acme {3}x4k_acme_/);
    const harness = await connectHarness(url, ["base"]);
    await harness.pay({ network: "base" });
    const least = await harness.as("acme").pay({ network: "base", amount: 4_999n });
    expect(least.verify.body.isValid).toBe(false);
    expect(await harness.networks.base.balanceOf(ours)).toBe(10_000n);

    await writeFile(file, "[");
    await using wrong = await startCli([...args, "--organizations", file]);
    expect((await wrong.ended).code).toBe(2);
    expect(wrong.stderr()).toContain(`--organizations: names the file ${file}, which is not JSON`);
  } finally {
    await rm(folder, { recursive: true });
  }
});
