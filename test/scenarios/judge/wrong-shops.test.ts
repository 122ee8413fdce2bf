import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startFacilitatorLine } from "../../../src/judge/scene/facilitator-line.ts";
import { openScene, type Scene } from "../../../src/judge/scene/scene.ts";
import { judgeShopAt } from "../../../src/judge/shop/judge-shop.ts";
import { shopVerdicts } from "../../../src/judge/shop/run-shop-case.ts";
import { shopCases } from "../../../src/judge/shop/shop-cases.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";
import { createTurns } from "../../../src/util/concurrency.ts";
import { repository } from "../../support/cli.ts";
import {
  goodShop,
  lateShop,
  openWrongShop,
  type WrongShop,
  wrongShops,
} from "../../support/judge/wrong-shops.ts";

/*
 * The table of wrong shops in docs/guides/judge.md: each is found by its cases, and by no others. They run in this process, on a
 * chain that they share.
 */

const where = { network: "base-sepolia", knownNetworks: builtInNetworks } as const;

/** Moves the chain's time, which all shops of this file share, so that it has a scene of its own. */
const afterExpiry = "after-expiry";

const inTurn = createTurns();
let shared: Scene;
let moved: Scene;
beforeAll(async () => {
  [shared, moved] = await Promise.all([openScene(where), openScene(where)]);
});
afterAll(() => Promise.all([shared, moved].map((scene) => scene[Symbol.asyncDispose]())));

async function judge(shop: WrongShop, seed: number, { redelivers = false } = {}, names?: readonly string[]) {
  const judgeOn = async (scene: Scene, isMoved: boolean) => {
    await using line = await startFacilitatorLine(scene.facilitatorUrl);
    const { offer, apiKey } = scene;
    await using opened = await openWrongShop(shop, { facilitatorUrl: line.url, apiKey, offer });
    const { url, otherUrl } = opened;
    const cases = shopCases.filter(
      ({ name }, index) =>
        index === 0 || ((name === afterExpiry) === isMoved && (names === undefined || names.includes(name))),
    );
    return await judgeShopAt(
      { url, otherUrl, scene, line, running: undefined },
      {
        ...where,
        ...{ cases, redelivers, seed, lateMs: 2_000, timeoutMs: 10_000 },
        shop: { url, otherUrl, facilitatorPort: 0 },
      },
    );
  };
  const inTime = await judgeOn(shared, false);
  const later = await inTurn(() => judgeOn(moved, true));
  const results = [...inTime, ...later.slice(1)];
  return results.filter(({ verdict }) => !["good", "not_run"].includes(shopVerdicts[verdict].level));
}

const namesOf = (bad: Awaited<ReturnType<typeof judge>>) => bad.map(({ tested }) => tested.name);

describe.concurrent("one after the other", () => {
  test.each([goodShop, ...wrongShops].map((shop, seed) => [shop.fault, shop, seed] as const))(
    "a shop that %s is found by its case alone",
    async (_fault, shop, seed) => {
      expect(namesOf(await judge(shop, seed))).toEqual(shop.foundBy);
    },
    // Five shops share two cores.
    180_000,
  );
});

test("a shop that settles once it has served is waited for, and found where its settle is refused", async () => {
  const bad = await judge(lateShop, 1_001, {}, ["facilitator-refuses"]);
  expect(bad.map(({ tested, verdict }) => [tested.name, verdict])).toEqual([
    ["facilitator-refuses", "served_without_payment"],
  ]);
});

test("a shop that delivers again what was paid for is not called bad where it is to do so", async () => {
  const again = wrongShops.find(({ foundBy }) => foundBy.includes("same-twice"));
  if (again === undefined) throw new Error("no shop delivers again");
  expect(namesOf(await judge(again, 1_002, { redelivers: true }, again.foundBy))).toEqual([]);
  const [first] = await judge(again, 1_003, {}, ["same-twice"]);
  expect(first?.notes).toEqual([expect.stringContaining("--redelivers")]);
});

test("the guide has the table of wrong shops", async () => {
  const guide = await readFile(join(repository, "docs/guides/judge.md"), "utf8");
  for (const { fault, foundBy } of wrongShops) {
    expect(guide).toContain(`| ${fault} | ${foundBy.map((name) => `\`${name}\``).join(", ")} |\n`);
  }
});
