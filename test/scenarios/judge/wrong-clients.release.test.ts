import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openShops } from "../../../src/judge/client/case-shop.ts";
import { type ClientCase, clientCases } from "../../../src/judge/client/client-cases.ts";
import { judgeClientFacts, runClientCase } from "../../../src/judge/client/judge-client.ts";
import { runCases } from "../../../src/judge/frame/run-cases.ts";
import { openScene, type Scene } from "../../../src/judge/scene/scene.ts";
import { shortNames } from "../../../src/methods/method-lists.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";
import { createSerialQueue, inParallel } from "../../../src/util/concurrency.ts";
import { findDiffering } from "../../support/judge/decisions.ts";
import { judgeTable } from "../../support/judge/judge-tables.ts";
import { type Buyer, carefulBuyer, startBuyer, wrongBuyers } from "../../support/judge/wrong-buyers.ts";

/*
 * The table of wrong clients in docs/judge-cases.md: each is found by its case, and by no other. They run in this process,
 * against the shops and chains of the judge, which they share, in the cases in which they decide anything otherwise than the
 * careful one.
 */

const where = { network: "base-sepolia", knownNetworks: builtInNetworks } as const;
const slowMs = 200;

/** Five buyers share two cores, and some of them go on until they are ended. */
const timeoutMs = 180_000;

/** The scenes of one way to pay: one that most cases share, and one for each case that needs its own. */
async function openScenes(way: string, cases: readonly ClientCase[]) {
  const shared = await openScene({ ...where, way, hasOtherNetwork: true });
  await shared.otherAsset();
  const own = await Promise.all(
    cases
      .flatMap(({ name, own }) => (own === undefined ? [] : [{ name, own }]))
      .map(async ({ name, own }) => [name, await openScene({ ...where, way, ...own })] as const),
  );
  const scenes = new Map<string, Scene>(own);
  const inTurn = createSerialQueue();
  return {
    inTurn,
    of: ({ name }: ClientCase) => scenes.get(name) ?? shared,
    async [Symbol.asyncDispose]() {
      await Promise.all([shared, ...scenes.values()].map((scene) => scene[Symbol.asyncDispose]()));
    },
  };
}

/** Never used twice: a test that is tried again has payers that have not paid yet. */
let nextSeed = 1;

type Scenes = Awaited<ReturnType<typeof openScenes>>;

/** The bad findings about a buyer, by the cases. */
async function judgeBuyer(
  buyer: Buyer,
  scenes: Scenes,
  cases: readonly ClientCase[],
  differing = findDiffering<Buyer>([]),
) {
  await using shops = await openShops();
  const isSlow = buyer.foundBy === "slow-answer";
  const seed = nextSeed++;
  const run = (tested: ClientCase) =>
    runClientCase(tested, scenes.of(tested), shops, {
      ...{ ...where, cases, networks: [], ways: [], versions: [2], seed },
      start: startBuyer(buyer, differing.watch(tested.name)),
      ...{ slowMs: isSlow ? 12_000 : slowMs, timeoutMs: isSlow ? 40_000 : 15_000 },
    });
  const findings = await runCases(
    cases.map((tested) => ({
      ...tested,
      suite: where.network,
      // Where the facilitator waits, blocks are held, for whoever pays on that chain.
      run: () => (tested.own?.settleWaitMs === undefined ? run(tested) : scenes.inTurn(() => run(tested))),
    })),
    judgeClientFacts,
    { atOnce: 6, afterFirst: async ({ level, text }) => (level === "good" ? undefined : text) },
  );
  const bad = findings.filter(({ level }) => level === "wrong");
  return {
    bad: bad.map(({ name }) => name),
    /** The events, for the message of a failed test. */
    shown: JSON.stringify(
      findings
        .filter((finding) => bad.includes(finding) || finding.name === buyer.foundBy)
        .map(({ name, verdict, seen }) => [name, verdict, ...seen]),
      undefined,
      1,
    ),
  };
}

/** Runs the careful buyer in every case, and each other in those where it decides anything otherwise. */
async function judgeAll(scenes: Scenes, cases: readonly ClientCase[]) {
  const differing = findDiffering(wrongBuyers);
  const careful = await judgeBuyer(carefulBuyer, scenes, cases, differing);
  return {
    careful,
    judge: (buyer: Buyer) => {
      const own = cases.filter(({ name }) => differing.has(buyer, name));
      return judgeBuyer(buyer, scenes, own);
    },
  };
}

describe.concurrent("by EIP-3009", () => {
  let scenes: Scenes;
  let judged: Awaited<ReturnType<typeof judgeAll>>;
  beforeAll(async () => {
    scenes = await openScenes("eip3009", clientCases);
    judged = await judgeAll(scenes, clientCases);
  }, timeoutMs);
  afterAll(() => scenes[Symbol.asyncDispose]());

  test("a careful buyer is good in every case", () => {
    expect(judged.careful.bad, judged.careful.shown).toEqual([]);
  });

  test.each(wrongBuyers.map((buyer) => [buyer.fault, buyer] as const))(
    "a buyer that %s is found by its case alone",
    async (_fault, buyer) => {
      const { bad, shown } = await judged.judge(buyer);
      expect(bad, shown).toEqual([buyer.foundBy]);
    },
    timeoutMs,
  );
});

/** Those whose fault the other ways to pay could hide: a second maximum, another network, another token, a later time. */
const byPermit2 = [
  ...["shop-answer-lost", "thousandfold", "other-network-first", "other-asset-first", "other-terms"],
  ...["settles-late", "pending-refused", "parallel", "nothing-redelivered"],
];

test.concurrent.each(shortNames.slice(1))(
  "buyers that pay by %s are found by their cases alone",
  async (way) => {
    const cases = clientCases.filter(({ name, own }) => own === undefined && name !== "slow-answer");
    await using scenes = await openScenes(way, cases);
    const { careful, judge } = await judgeAll(scenes, cases);
    const buyers = wrongBuyers.filter(({ foundBy }) => byPermit2.includes(foundBy));
    const found = await inParallel(buyers, 3, async (buyer) => {
      const { bad } = await judge(buyer);
      return [buyer.foundBy, bad] as const;
    });
    expect({ none: careful.bad, ...Object.fromEntries(found) }).toEqual({
      none: [],
      ...Object.fromEntries(byPermit2.map((name) => [name, [name]])),
    });
  },
  timeoutMs,
);

test("the guide has the table of wrong clients, and no other client", () => {
  const rows = wrongBuyers.map(({ fault, foundBy }) => [fault, `\`${foundBy}\``]);
  expect(judgeTable("a client that").toSorted()).toEqual(rows.toSorted());
});
