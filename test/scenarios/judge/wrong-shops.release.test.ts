import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startFacilitatorLine } from "../../../src/judge/scene/facilitator-line.ts";
import { openScene, type Scene } from "../../../src/judge/scene/scene.ts";
import { judgeShopAt, type RunLimits } from "../../../src/judge/shop/judge-shop.ts";
import { shopCases } from "../../../src/judge/shop/shop-cases.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";
import type { X402Version } from "../../../src/protocol/requests.ts";
import { createSerialQueue, inParallel } from "../../../src/util/concurrency.ts";
import { findDiffering, type OnDecision } from "../../support/judge/decisions.ts";
import { judgeTable } from "../../support/judge/judge-tables.ts";
import {
  goodShop,
  goodShopV2,
  lateShop,
  muteShop,
  openWrongShop,
  unusualShops,
  type WrongShop,
  wrongShops,
} from "../../support/judge/wrong-shops.ts";

/*
 * The table of wrong shops in docs/judge-cases.md: each is found by its cases, and by no others. They run in this process, on a
 * chain that they share, in the cases in which they decide anything otherwise than the good one.
 */

const where = { network: "base-sepolia", knownNetworks: builtInNetworks } as const;

/** Moves the chain's time, which all shops of this file share, so that it has a scene of its own. */
const afterExpiry = "after-expiry";

const inTurn = createSerialQueue();
let shared: Scene;
let moved: Scene;
beforeAll(async () => {
  [shared, moved] = await Promise.all([openScene(where), openScene(where)]);
});
afterAll(() => Promise.all([shared, moved].map((scene) => scene[Symbol.asyncDispose]())));

type Judging = { redelivers?: boolean; onDecision?: OnDecision<WrongShop>; limits?: RunLimits };

/** The bad findings about a shop, by the cases of these names; the first case always runs. */
async function judge(
  shop: WrongShop,
  seed: number,
  names: readonly string[],
  { redelivers = false, onDecision = () => {}, limits }: Judging = {},
) {
  const judgeOn = async (scene: Scene, isMoved: boolean) => {
    const [plain, ...others] = shopCases;
    const own = others.filter(({ name }) => names.includes(name) && (name === afterExpiry) === isMoved);
    if (plain === undefined || (isMoved && own.length === 0)) return [];
    await using line = await startFacilitatorLine(scene.facilitatorUrl);
    const { offer, apiKey } = scene;
    const facilitator = { facilitatorUrl: line.url, apiKey, offer };
    await using opened = await openWrongShop(shop, facilitator, onDecision);
    const { url, otherUrl } = opened;
    return await judgeShopAt(
      { url, otherUrl, scene, line, running: undefined },
      {
        knownNetworks: builtInNetworks,
        networks: [where.network],
        ...{ cases: [plain, ...own], channelCases: [], redelivers, seed, lateMs: 2_000, timeoutMs: 10_000 },
        shop: { url, otherUrl, facilitatorPort: 0 },
        ...(limits !== undefined && { limits }),
      },
    );
  };
  const inTime = await judgeOn(shared, false);
  const later = await inTurn(() => judgeOn(moved, true));
  return [...inTime, ...later.slice(1)].filter(({ level }) => level !== "good" && level !== "not_run");
}

const namesOf = (bad: Awaited<ReturnType<typeof judge>>) => bad.map(({ name }) => name);

const speaks =
  (version: X402Version) =>
  ({ x402Version = 1 }: WrongShop) =>
    x402Version === version;

/** Five shops share two cores. */
const timeoutMs = 180_000;

describe.concurrent("in the cases in which it decides anything otherwise than a good one", () => {
  const differing = findDiffering(wrongShops);
  let good: string[];
  beforeAll(async () => {
    // One shop for each case, so that its decisions are known to be made there.
    const found = await inParallel([...shopCases.entries()], 5, async ([index, { name }]) => [
      ...(await judge(goodShop, 2_000 + index, [name], { onDecision: differing.watch(name, speaks(1)) })),
      ...(await judge(goodShopV2, 3_000 + index, [name], { onDecision: differing.watch(name, speaks(2)) })),
    ]);
    good = namesOf(found.flat());
  }, timeoutMs);

  test("a good one is good in every case, of either version", () => {
    expect(good).toEqual([]);
  });

  test.each(wrongShops.map((shop, seed) => [shop.fault, shop, seed] as const))(
    "a shop that %s is found by its case alone",
    async (_fault, shop, seed) => {
      const names = shopCases.map(({ name }) => name).filter((name) => differing.has(shop, name));
      expect(namesOf(await judge(shop, seed, names))).toEqual(shop.foundBy);
    },
    timeoutMs,
  );
});

test.each(unusualShops.map((shop, seed) => [shop.fault, shop, 1_100 + seed] as const))(
  "a shop that %s is not accused",
  async (_fault, shop, seed) => {
    const names = shopCases.map(({ name }) => name).filter((name) => name !== afterExpiry);
    const bad = await judge(shop, seed, names);
    expect(bad.map(({ name, verdict, notes }) => [name, verdict, ...notes])).toEqual([]);
  },
  timeoutMs,
);

test("a shop that offers no token that the buyers have is told so", async () => {
  await expect(judge({ ...goodShop, offersOtherToken: "alone" }, 1_200, [])).rejects.toMatchObject({
    name: "KitError",
    hints: [expect.stringContaining("X402_ASSET")],
  });
});

test("a shop that settles once it has served is waited for, and found where its settle is refused", async () => {
  const bad = await judge(lateShop, 1_001, ["facilitator-refuses"]);
  expect(bad.map(({ name, verdict }) => [name, verdict])).toEqual([
    ["facilitator-refuses", "served_without_payment"],
  ]);
});

test("a shop that never answers is waited for as long as a run may take, and what was cut short is not judged", async () => {
  const names = ["same-twice", "facilitator-down", "wrong-signature"];
  const bad = await judge(muteShop, 1_004, names, { limits: { startMs: 3_000, endMs: 4_000 } });
  expect(bad.map(({ verdict, notes }) => [verdict, ...notes])).toEqual([
    ["not_judged", "the run had taken 4 s"],
    ...names.map(() => ["not_judged", "the run had taken 3 s"]),
  ]);
});

test("a shop that delivers again what was paid for is not called bad where it is to do so", async () => {
  const again = wrongShops.find(({ foundBy }) => foundBy.includes("same-twice"));
  if (again === undefined) throw new Error("no shop delivers again");
  expect(namesOf(await judge(again, 1_002, again.foundBy, { redelivers: true }))).toEqual([]);
  const [first] = await judge(again, 1_003, ["same-twice"]);
  expect(first?.notes).toEqual([expect.stringContaining("--redelivers")]);
});

test("the guide has the table of wrong shops, and no other shop", () => {
  const rows = wrongShops.map(({ fault, foundBy }) => [
    fault,
    foundBy.map((name) => `\`${name}\``).join(", "),
  ]);
  expect(judgeTable("a shop that").toSorted()).toEqual(rows.toSorted());
});
