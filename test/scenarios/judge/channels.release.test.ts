import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { channelClientCases } from "../../../src/judge/channels/channel-client-cases.ts";
import { channelShopCases } from "../../../src/judge/channels/channel-shop-cases.ts";
import { judgeChannelFacts, runChannelCase } from "../../../src/judge/channels/judge-channel-client.ts";
import { openShops } from "../../../src/judge/client/case-shop.ts";
import { runCases } from "../../../src/judge/frame/run-cases.ts";
import { startFacilitatorLine } from "../../../src/judge/scene/facilitator-line.ts";
import { openScene, type Scene } from "../../../src/judge/scene/scene.ts";
import { judgeShopAt } from "../../../src/judge/shop/judge-shop.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";
import { channelSubject, judge } from "../../support/judge/judge.ts";
import { judgeTable } from "../../support/judge/judge-tables.ts";
import {
  type ChannelBuyer,
  carefulChannelBuyer,
  startChannelBuyer,
  wrongChannelBuyers,
} from "../../support/judge/wrong-channel-buyers.ts";
import {
  type ChannelShop,
  goodChannelShop,
  openChannelShop,
  wrongChannelShops,
} from "../../support/judge/wrong-channel-shops.ts";

/*
 * `judge client` and `judge shop` for scheme “batch-settlement”: buyers and shops of others, and the tables of wrong ones in
 * docs/judge-cases.md.
 */

const way = "batch-settlement";
const timeoutMs = 180_000;

test.each([
  ["of the kit is good in every case", "kit", {}],
  // It takes nothing of a receipt that names a wrong total, not even the charge, and signs another deposit.
  ["of the public packages deposits again", "public", { "total-too-high": "deposited_again" }],
])(
  "a buyer %s",
  async (_what, manner, expected) => {
    const { code, bad, findings, verdicts } = await judge(
      "client",
      channelSubject("buyer", manner),
      "--ways",
      way,
    );
    expect(bad, JSON.stringify(findings, undefined, 1)).toEqual(expected);
    expect(Object.keys(verdicts)).toHaveLength(channelClientCases.length);
    expect(code).toBe(Object.keys(expected).length);
  },
  timeoutMs,
);

test("a buyer that buys once is told to buy as often as it was asked", async () => {
  const judging = judge("client", channelSubject("buyer", "once"), "--ways", way);
  await expect(judging).rejects.toThrow("X402_PURCHASES");
});

describe.concurrent("buyers of which each has one fault", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene({ network: "base-sepolia", knownNetworks: builtInNetworks });
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  /** The names of the cases in which a buyer is bad. */
  async function judgeBuyer(buyer: ChannelBuyer) {
    await using shops = await openShops();
    const options = {
      ...{ start: startChannelBuyer(buyer), timeoutMs: 15_000 },
      ...{ header: undefined, signal: undefined, seed: wrongChannelBuyers.indexOf(buyer) + 1 },
    };
    const findings = await runCases(
      channelClientCases.map((tested) => ({
        ...tested,
        suite: "base-sepolia",
        run: () => runChannelCase(tested, { scene, shops, way }, options),
      })),
      judgeChannelFacts,
      { atOnce: 6, afterFirst: async ({ level, text }) => (level === "good" ? undefined : text) },
    );
    const bad = findings.filter(({ level }) => level === "wrong" || level === "not_judged");
    return {
      bad: bad.map(({ name }) => name),
      shown: JSON.stringify(bad.map(({ seen, notes }) => [seen, notes])),
    };
  }

  test.each([
    [carefulChannelBuyer.fault, carefulChannelBuyer, []] as const,
    ...wrongChannelBuyers.map((one) => [one.fault, one, [one.foundBy]] as const),
  ])(
    "one that has the fault “%s” is found by its case alone",
    async (_fault, buyer, foundBy) => {
      const { bad, shown } = await judgeBuyer(buyer);
      expect(bad, shown).toEqual(foundBy);
    },
    timeoutMs,
  );
});

test("the guide has the table of wrong buyers, and no other", () => {
  const rows = wrongChannelBuyers.map(({ fault, foundBy }) => [fault, `\`${foundBy}\``]);
  expect(judgeTable("a client with channels that").toSorted()).toEqual(rows.toSorted());
});

test.each([
  ["that keeps its channels in files is good in every case", "files", {}],
  ["that keeps its channels in memory loses them at a restart", "memory", { restart: "lost_vouchers" }],
  ["that claims nothing is not judged by its claims", "unclaimed", {}],
])(
  "the shop of the public packages %s",
  async (_what, manner, expected) => {
    const { code, bad, findings, verdicts } = await judge(
      "shop",
      channelSubject("shop", manner),
      "--ways",
      way,
    );
    expect(bad, JSON.stringify(findings, undefined, 1)).toEqual(expected);
    expect(Object.keys(verdicts)).toHaveLength(channelShopCases.length);
    expect(verdicts.withdrawal).toBe(manner === "unclaimed" ? "not_run" : "good");
    expect(code).toBe(Object.keys(expected).length);
  },
  timeoutMs,
);

test("a shop that sells on channels alone is to be judged by that way", async () => {
  const judging = judge("shop", channelSubject("shop", "files"));
  await expect(judging).rejects.toThrow("--ways batch-settlement");
});

describe.concurrent("shops of which each has one fault", () => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openScene({ network: "base-sepolia", knownNetworks: builtInNetworks });
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  /** The findings about a shop that are bad. */
  async function judgeOne(shop: ChannelShop) {
    await using line = await startFacilitatorLine(scene.facilitatorUrl);
    await using opened = await openChannelShop(shop, scene, way);
    const { url, restart } = opened;
    const findings = await judgeShopAt(
      { url, otherUrl: undefined, scene, line, running: undefined, restart },
      {
        ...{ knownNetworks: builtInNetworks, networks: ["base-sepolia"], ways: [way] },
        ...{ cases: [], channelCases: channelShopCases, redelivers: false, lateMs: 0, timeoutMs: 10_000 },
        seed: 100 + wrongChannelShops.indexOf(shop),
        shop: { url, otherUrl: undefined, facilitatorPort: 0 },
      },
    );
    const bad = findings.filter(({ level }) => level !== "good" && level !== "not_run");
    return {
      bad: bad.map(({ name }) => name),
      shown: JSON.stringify(bad.map(({ seen, notes }) => [seen, notes])),
    };
  }

  test.each([
    [goodChannelShop.fault, goodChannelShop, []] as const,
    ...wrongChannelShops.map((one) => [one.fault, one, [one.foundBy]] as const),
  ])(
    "one that has the fault “%s” is found by its case alone",
    async (_fault, shop, foundBy) => {
      const { bad, shown } = await judgeOne(shop);
      expect(bad, shown).toEqual(foundBy);
    },
    timeoutMs,
  );
});

test("the guide has the table of wrong shops, and no other", () => {
  const rows = wrongChannelShops.map(({ fault, foundBy }) => [fault, `\`${foundBy}\``]);
  expect(judgeTable("a shop with channels that").toSorted()).toEqual(rows.toSorted());
});
