import { type Finding, NotRun, runCases, type Verdict } from "../frame/run-cases.ts";
import { payerOf } from "../scene/offers.ts";
import { caseOn, describePurchase, type JudgeOptions, type PurchaseFacts } from "../scene/purchases.ts";
import type { Scene } from "../scene/scene.ts";
import { type Terms, wayNameOf } from "../shop/shop-payment.ts";
import { claimWaitMs, createChannelShopBuyer } from "./channel-shop-buyer.ts";
import type { ChannelShopCase } from "./channel-shop-cases.ts";

export type ChannelShopPlace = {
  url: string;
  headers: Readonly<Record<string, string>>;
  scene: Scene;
  /** Stops the shop and starts it again; undefined if it was not started here. */
  restart: (() => Promise<void>) | undefined;
};

/** The facts about one case, from the chain and the receipts. Its transfers are the deposits. */
export type ChannelShopFacts = PurchaseFacts & {
  price: bigint;
  /** The charge of each delivery and the channel's total after it, by its receipt; undefined if the receipt omits it. */
  sales: readonly { charged: bigint | undefined; total: bigint | undefined }[];
  /** The most that the shop can claim: the highest voucher signed for a purchase, capped by the channel's balance. */
  ceiling: bigint;
  /** How many purchases were refused although they were covered. */
  refused: number;
  /** The amount claimed on chain. */
  claimed: bigint;
  /** The amount charged but still not claimed when the wait was over. */
  unclaimed: bigint;
  /** The verdict if `unclaimed` is positive; undefined for other cases, and if the shop was never seen to claim. */
  loss: "lost_vouchers" | "ignored_withdrawal" | undefined;
};

const losses: Readonly<Record<string, ChannelShopFacts["loss"]>> = {
  restart: "lost_vouchers",
  withdrawal: "ignored_withdrawal",
};

const answerTimeoutMs = 10_000;

/** Few enough for a shop that claims all of their channels at once. */
const atOnce = 3;

/** Judges a shop that sells on channels, by its receipts and by the chain. */
export async function judgeChannelShop(
  terms: Terms,
  { scene, ...place }: ChannelShopPlace,
  options: JudgeOptions & { channelCases: readonly ChannelShopCase[]; ways?: readonly string[] | undefined },
): Promise<Finding<ChannelShopFacts>[]> {
  const { channelCases, seed, signal } = options;
  const way = wayNameOf(terms);
  let hasClaimed = false;

  async function run(tested: ChannelShopCase): Promise<ChannelShopFacts> {
    signal?.throwIfAborted();
    const payer = payerOf(seed, `shop/${terms.network.name}/${way}/${tested.name}`);
    await scene.fund(payer, { way });
    const timeoutMs = answerTimeoutMs;
    const { buyer, record } = createChannelShopBuyer({ ...place, scene, payer, terms, timeoutMs });
    await tested.run(buyer);
    const { claimed, ceiling } = await buyer.settled();
    hasClaimed ||= claimed > 0n;
    const { log, ...counted } = record;
    const loss = losses[tested.name];
    if (loss === "ignored_withdrawal" && record.unclaimed > 0n && !hasClaimed) {
      throw new NotRun(
        `it was never seen to claim within ${claimWaitMs / 1_000} s, and has withdrawDelay for it`,
      );
    }
    return {
      ...counted,
      claimed,
      ceiling,
      price: terms.value,
      loss: hasClaimed ? loss : undefined,
      transfers: await scene.transfersFrom(payer.address),
      services: record.sales.length,
      exchanges: log.lines(),
      links: log.links(),
    };
  }

  return runCases(
    channelCases.map((tested) => ({
      ...caseOn(tested, { network: terms.network.name, way }, options),
      run: () => run(tested),
    })),
    judgeChannelShopFacts,
    {
      atOnce,
      afterFirst: async ({ level }) =>
        level === "good" ? undefined : "it is bad where nothing is wrong with the buyer",
    },
  );
}

/** The verdicts on a shop that sells on channels, worst first. */
const verdicts = {
  charged_more: { text: "charged more than its price", level: "wrong" },
  claimed_more: { text: "claimed more than it said", level: "wrong" },
  served_beyond: { text: "served beyond what it can claim", level: "wrong" },
  lost_vouchers: { text: "lost what it had sold at a restart", level: "wrong" },
  ignored_withdrawal: { text: "ignored a withdrawal", level: "wrong" },
  refused: { text: "refused a purchase that was paid", level: "wrong" },
  wrong_answer: { text: "wrong headers", level: "differs" },
  good: { text: "good", level: "good" },
} as const;

type ChannelShopVerdict = keyof typeof verdicts;

/** Judges by the charges in receipts, the buyer's ceilings, and the claims on chain. */
export function judgeChannelShopFacts(facts: ChannelShopFacts): Verdict & { verdict: ChannelShopVerdict } {
  const verdict = verdictOf(facts);
  const why = reasonOf(verdict, facts);
  const isUnknown = why === undefined && facts.unclaimed > 0n;
  const unknown = `it had claimed nothing ${claimWaitMs / 1_000} s later, so that its claims were not judged`;
  return {
    verdict,
    ...verdicts[verdict],
    seen: describePurchase(facts),
    notes: [...(why === undefined ? [] : [why]), ...(isUnknown ? [unknown] : [])],
  };
}

const chargedIn = ({ sales, price }: ChannelShopFacts) =>
  sales.reduce((sum, { charged }) => sum + (charged ?? price), 0n);

function verdictOf(facts: ChannelShopFacts): ChannelShopVerdict {
  const { sales, price, ceiling, claimed, unclaimed, loss, refused } = facts;
  let sum = 0n;
  for (const { charged = price, total } of sales) {
    sum += charged;
    if (charged > price || (total !== undefined && total > sum)) return "charged_more";
  }
  if (claimed > sum) return "claimed_more";
  if (sum > ceiling) return "served_beyond";
  if (loss !== undefined && unclaimed > 0n) return loss;
  if (refused > 0) return "refused";
  return sales.some(({ charged, total }) => charged === undefined || total === undefined)
    ? "wrong_answer"
    : "good";
}

/** Explains how the verdict costs money. */
function reasonOf(verdict: ChannelShopVerdict, facts: ChannelShopFacts): string | undefined {
  const { claimed, unclaimed, ceiling, price } = facts;
  const charged = chargedIn(facts);
  switch (verdict) {
    case "charged_more":
      return `buyers agreed to ${price} for each purchase; careful ones buy nothing more after such a receipt`;
    case "claimed_more":
      return `it claimed ${claimed}, and its receipts say ${charged}: the buyer loses the difference`;
    case "served_beyond":
      return `it served for ${charged}, and the buyer's vouchers and deposit let it claim ${ceiling}: the rest is never paid`;
    case "lost_vouchers":
      return `${unclaimed} of what it sold were not claimed ${claimWaitMs / 1_000} s after the restart: unless that buyer comes again, they never are`;
    case "ignored_withdrawal":
      return `${unclaimed} of what it sold were not claimed ${claimWaitMs / 1_000} s later, where it claims otherwise: after withdrawDelay the buyer has them`;
    case "wrong_answer":
      return "a receipt says not in extra what was charged (chargedAmount, channelState.chargedCumulativeAmount)";
    case "refused":
      return "the buyer's deposit is in the channel, and buys nothing";
    default:
      return undefined;
  }
}
