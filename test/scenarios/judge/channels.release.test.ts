import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { channelClientCases } from "../../../src/judge/channels/channel-client-cases.ts";
import { judgeChannelFacts, runChannelCase } from "../../../src/judge/channels/judge-channel-client.ts";
import { openShops } from "../../../src/judge/client/case-shop.ts";
import { runCases } from "../../../src/judge/frame/run-cases.ts";
import { openScene, type Scene } from "../../../src/judge/scene/scene.ts";
import { builtInNetworks } from "../../../src/protocol/networks.ts";
import { judge, subject } from "../../support/judge/judge.ts";
import { judgeTable } from "../../support/judge/judge-tables.ts";
import {
  type ChannelBuyer,
  carefulChannelBuyer,
  startChannelBuyer,
  wrongChannelBuyers,
} from "../../support/judge/wrong-channel-buyers.ts";

/* `judge client` for scheme “batch-settlement”: buyers of others, and the table of wrong ones in docs/judge-cases.md. */

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
      subject("channel-buyer", manner),
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
  const judging = judge("client", subject("channel-buyer", "once"), "--ways", way);
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
