import { afterAll, beforeAll, expect, test } from "vitest";
import { createHarness, type Harness } from "../../../src/harness/index.ts";
import { testPayers } from "../../../src/payer/test-payers.ts";

/* What a verify has found out of a signature counts for further verifies and the settle of that payment, and for no other. */

let harness: Harness<"base">;
beforeAll(async () => {
  harness = await createHarness({ networks: ["base"] });
});
afterAll(() => harness?.close());

type Method = "eip3009" | "permit2";

/** The same request with another text in the place of one. */
function replaced(request: Record<string, unknown>, text: string, by: string): Record<string, unknown> {
  return JSON.parse(JSON.stringify(request).replaceAll(text, by));
}

function signatureIn(request: Record<string, unknown>): string {
  return /"signature":"(0x[0-9a-f]+)"/.exec(JSON.stringify(request))?.[1] ?? "";
}

test.each<Method>(["eip3009", "permit2"])(
  "a payment by %s is settled after it was verified",
  async (method) => {
    const request = await harness.sign({ network: "base", method });
    expect(await harness.verify(request)).toMatchObject({ body: { isValid: true } });
    expect(await harness.settle(request)).toMatchObject({ body: { success: true } });
  },
);

test.each<Method>(["eip3009", "permit2"])(
  "a verified payment by %s with another signature, or another payer, is refused as without the verify",
  async (method) => {
    const request = await harness.sign({ network: "base", method });
    const signature = signatureIn(request);
    const other = signatureIn(await harness.sign({ network: "base", method }));
    const forged = [
      replaced(request, signature, other),
      replaced(request, testPayers.funded.address, testPayers.delegated.address),
      replaced(request, testPayers.funded.address.toLowerCase(), testPayers.delegated.address),
    ].filter((one) => JSON.stringify(one) !== JSON.stringify(request));
    expect(forged.length).toBeGreaterThanOrEqual(2);
    for (const one of forged) {
      expect(await harness.verify(one)).toMatchObject({ body: { isValid: false } });
      const { body } = await harness.settle(one);
      expect(body).toMatchObject({ success: false });
      expect(await harness.verify(request)).toMatchObject({ body: { isValid: true } });
      expect(await harness.verify(one)).toMatchObject({ body: { isValid: false } });
      expect((await harness.settle(one)).body).toEqual(body);
    }
    expect(await harness.settle(request)).toMatchObject({ body: { success: true } });
  },
);
