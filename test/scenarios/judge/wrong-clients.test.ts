import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openShops } from "../../../src/judge/client/case-shop.ts";
import { type ClientCase, clientCases } from "../../../src/judge/client/client-cases.ts";
import { clientVerdicts, runClientCase } from "../../../src/judge/client/judge-client.ts";
import { type WayName, wayNames } from "../../../src/judge/scene/offers.ts";
import { openScene, type Scene } from "../../../src/judge/scene/scene.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";
import { createTurns, inParallel } from "../../../src/util/concurrency.ts";
import { repository } from "../../support/cli.ts";
import { type Buyer, carefulBuyer, startBuyer, wrongBuyers } from "../../support/judge/wrong-buyers.ts";

/*
 * The table of wrong clients in docs/guides/judge.md: each is found by its case, and by no other. They run in this process,
 * against the shops and chains of the judge, which they share.
 */

const where = { network: "base-sepolia", knownNetworks: builtInNetworks } as const;
const slowMs = 200;

/** Five buyers share two cores, and some of them go on until they are ended. */
const timeoutMs = 180_000;

/** The scenes of one way to pay: one that most cases share, and one for each case that needs its own. */
async function openScenes(way: WayName, cases: readonly ClientCase[]) {
  const shared = await openScene({ ...where, way, hasOtherNetwork: true });
  await shared.otherAsset();
  const own = await Promise.all(
    cases
      .flatMap(({ name, own }) => (own === undefined ? [] : [{ name, own }]))
      .map(async ({ name, own }) => [name, await openScene({ ...where, way, ...own })] as const),
  );
  const scenes = new Map<string, Scene>(own);
  const inTurn = createTurns();
  return {
    inTurn,
    of: ({ name }: ClientCase) => scenes.get(name) ?? shared,
    async [Symbol.asyncDispose]() {
      await Promise.all([shared, ...scenes.values()].map((scene) => scene[Symbol.asyncDispose]()));
    },
  };
}

type Scenes = Awaited<ReturnType<typeof openScenes>>;

/** Whether a buyer does anything of its own after a 402: one that does not, meets nothing new while a payment is pending. */
function concernedByPending({ foundBy }: Buyer): boolean {
  const some = [
    "none",
    "pending",
    "pending-refused",
    "receipt-denies",
    "facilitator-answer-lost",
    "asks-again",
  ];
  return some.includes(foundBy);
}

/** What is bad of a buyer, by the cases. */
async function judgeBuyer(buyer: Buyer, seed: number, scenes: Scenes, cases: readonly ClientCase[]) {
  await using shops = await openShops();
  const isSlow = buyer.foundBy === "slow-answer";
  const start = startBuyer(buyer, new Map());
  const run = (tested: ClientCase) =>
    runClientCase(tested, scenes.of(tested), shops, {
      ...{ ...where, cases, networks: [], ways: [], versions: [2], start, seed },
      ...{ slowMs: isSlow ? 12_000 : slowMs, timeoutMs: isSlow ? 40_000 : 15_000 },
    });
  const concerned = cases.filter(({ own }) => own?.settleWaitMs === undefined || concernedByPending(buyer));
  const results = await inParallel(concerned, 6, (tested) =>
    // Where the facilitator waits, blocks are held, for whoever pays on that chain.
    tested.own?.settleWaitMs === undefined ? run(tested) : scenes.inTurn(() => run(tested)),
  );
  const bad = results.filter(({ verdict }) => clientVerdicts[verdict].level !== "good");
  return {
    bad: bad.map(({ tested }) => tested.name),
    /** What happened, for the message of a failed test. */
    shown: JSON.stringify(
      results
        .filter((result) => bad.includes(result) || result.tested.name === buyer.foundBy)
        .map(({ tested, verdict, exchanges }) => [
          ...[tested.name, verdict],
          ...exchanges.map(({ atMs, payment, answer }) => `${atMs} ms, ${payment?.number}: ${answer}`),
        ]),
      undefined,
      1,
    ),
  };
}

describe.concurrent("by EIP-3009", () => {
  let scenes: Scenes;
  beforeAll(async () => {
    scenes = await openScenes("eip3009", clientCases);
  });
  afterAll(() => scenes[Symbol.asyncDispose]());

  test.each([carefulBuyer, ...wrongBuyers].map((buyer, seed) => [buyer.fault, buyer, seed] as const))(
    "a buyer that %s is found by its case alone",
    async (_fault, buyer, seed) => {
      const { bad, shown } = await judgeBuyer(buyer, seed, scenes, clientCases);
      expect(bad, shown).toEqual(buyer === carefulBuyer ? [] : [buyer.foundBy]);
    },
    timeoutMs,
  );
});

/** Those whose fault the other ways to pay could hide: a second maximum, another network, another token, a later time. */
const byPermit2 = [
  ...["shop-answer-lost", "thousandfold", "other-network-first", "other-asset-first", "other-terms"],
  ...["settles-late", "pending-refused", "parallel"],
];

test.each(wayNames.filter((way) => way !== "eip3009"))(
  "buyers that pay by %s are found by their cases alone",
  async (way) => {
    const cases = clientCases.filter(({ name, own }) => own === undefined && name !== "slow-answer");
    await using scenes = await openScenes(way, cases);
    const buyers = [carefulBuyer, ...wrongBuyers.filter(({ foundBy }) => byPermit2.includes(foundBy))];
    const found = await inParallel([...buyers.entries()], 3, async ([seed, buyer]) => {
      const { bad } = await judgeBuyer(
        buyer,
        seed,
        scenes,
        buyer === carefulBuyer ? cases : casesOf(buyer, cases),
      );
      return [buyer.foundBy, bad] as const;
    });
    expect(Object.fromEntries(found)).toEqual({
      none: [],
      ...Object.fromEntries(byPermit2.map((name) => [name, [name]])),
    });
  },
  timeoutMs,
);

/** The case of a buyer and two others: all of them run by EIP-3009. */
function casesOf({ foundBy }: Buyer, cases: readonly ClientCase[]): ClientCase[] {
  return cases.filter(({ name }) => [foundBy, "plain", "redirect"].includes(name));
}

test("the guide has the table of wrong clients", async () => {
  const guide = await readFile(join(repository, "docs/guides/judge.md"), "utf8");
  for (const { fault, foundBy } of wrongBuyers) expect(guide).toContain(`| ${fault} | \`${foundBy}\` |\n`);
});
