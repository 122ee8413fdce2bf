import { expect, test } from "vitest";
import { createFixtures, findScenario } from "../src/fixtures/index.ts";
import { startMockServer } from "../src/fixtures/mock-server/index.ts";
import { createHarness } from "../src/harness/index.ts";
import { startHarnessPool } from "../src/harness/pool/index.ts";
import type { Network } from "../src/protocol/networks.ts";

/* A misspelt name is an error of the compiler, which this file shows to `npm run check`, and refused with the nearest one. */

test("a network that there is not", async () => {
  // @ts-expect-error there is no such network
  await expect(createHarness({ networks: ["bsae"] })).rejects.toThrow(/bsae.*base/s);
  // @ts-expect-error there is no such network
  await expect(startHarnessPool({ networks: ["bsae"] })).rejects.toThrow(/bsae.*base/s);
  // @ts-expect-error there is no such network
  await expect(startMockServer({ networks: ["bsae"] })).rejects.toThrow("did you mean base?");
  const baseUrl = "https://misspelt.example";
  // @ts-expect-error there is no such network
  expect(() => createFixtures({ baseUrl, networks: ["base", "bsae"] })).toThrow("did you mean base?");
});

/*
 * Each expected error is at the line with the name, and at none before it: a compiler that blames the whole argument names another
 * member that is missing.
 */
test("the compiler blames the name of the network", async () => {
  const harness = createHarness({
    journal: false,
    // @ts-expect-error the name is the mistake
    networks: ["Base"],
  });
  await expect(harness).rejects.toThrow(/networks: "Base" is not one of base, .*polygon/);
  const mixed = createHarness({
    networks: [
      "base",
      // @ts-expect-error the name is the mistake
      "Polygon",
    ],
  });
  await expect(mixed).rejects.toThrow(/networks: "Polygon" is not one of base, .*polygon/);
});

test("a payment on a network that is not served", async () => {
  const all = createFixtures({ baseUrl: "https://all.example" });
  // @ts-expect-error there is no such network
  await expect(all.payment({ network: "bsae" })).rejects.toThrow("did you mean base?");
  const one = createFixtures({ baseUrl: "https://one.example", networks: ["base"] });
  // @ts-expect-error polygon is not served
  await expect(one.payment({ network: "polygon" })).rejects.toThrow(
    /no network "polygon"|fixtures' networks/,
  );
  await expect(one.payment({ network: "base" })).resolves.toMatchObject({ x402Version: 2 });
  all.dispose();
  one.dispose();
});

test("a scenario that there is not", () => {
  // @ts-expect-error there is no such scenario
  expect(() => findScenario("settle.nope")).toThrow('There is no scenario "settle.nope"; the nearest are ');
  // One that is only known when it runs is checked then.
  const name: string = "settle.insufficient_funds";
  expect(findScenario(name).name).toBe("settle.insufficient_funds.empty");
});

test("a network that something else knows is no mistake", () => {
  const added: readonly Network[] = [];
  const wanted: string[] = ["base"];
  const settings = { baseUrl: "https://added.example", addedNetworks: added, networks: wanted };
  createFixtures(settings).dispose();
  expect(() => createFixtures({ ...settings, networks: ["my-chain"] })).toThrow('no network "my-chain"');
});
