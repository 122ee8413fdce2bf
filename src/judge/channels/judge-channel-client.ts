import { availableParallelism } from "node:os";
import { payableNamed } from "../../methods/method-lists.ts";
import { makeOffer, methodFor } from "../../payer/sign-payment.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import type { Shops } from "../client/case-shop.ts";
import {
  type ClientRun,
  notesOf,
  type RunClientOptions,
  requireWorkingClient,
  runClient,
} from "../client/run-client.ts";
import { type Finding, runCases, type Verdict } from "../frame/run-cases.ts";
import { goodsOf, payerOf } from "../scene/offers.ts";
import { caseOn, describePurchase, type JudgeOptions, type PurchaseFacts } from "../scene/purchases.ts";
import { openScene, type Scene } from "../scene/scene.ts";
import { createChannelBook } from "./channel-book.ts";
import { type ChannelCounts, createChannelCaseShop } from "./channel-case-shop.ts";
import type { ChannelClientCase } from "./channel-client-cases.ts";

export type ChannelClientOptions = JudgeOptions &
  RunClientOptions & {
    channelCases: readonly ChannelClientCase[];
    ways: readonly string[];
  };

/** The deposit that shops suggest, in multiples of the price; enough for every case. */
const depositInPrices = 10n;

/** Each case runs its client's processes one after the other, against its own shop. */
const atOncePerCore = 2;

/**
 * Runs a client that keeps channels against misbehaving shops, and judges it by its signatures.
 *
 * @throws {KitError} if the command does not buy from a working shop
 */
export async function judgeChannelClient(
  on: { network: NetworkName; way: string },
  shops: Shops,
  options: ChannelClientOptions,
  onJudged: (findings: readonly Finding<PurchaseFacts>[]) => Promise<void>,
): Promise<readonly Finding<ChannelClientFacts>[]> {
  const { network, way } = on;
  const { channelCases, knownNetworks, networkFile, studio, signal } = options;
  await using scene = await openScene({ network, knownNetworks, networkFile, studio, signal });
  const findings = await runCases(
    channelCases.map((tested) => ({
      ...caseOn(tested, on, options),
      run: () => runChannelCase(tested, { scene, shops, way }, options),
    })),
    judgeChannelFacts,
    {
      atOnce: atOncePerCore * availableParallelism(),
      async afterFirst(finding) {
        requireWorkingClient(finding, { ...options, versions: [2] });
        if (finding.verdict === "bought_too_few") throw boughtTooFew(finding.facts);
        return finding.level === "good" ? undefined : "it is bad where nothing is wrong with the shop";
      },
    },
  );
  await onJudged(findings);
  return findings;
}

function boughtTooFew(facts: ChannelClientFacts | undefined): KitError {
  return new KitError(`The command bought ${facts?.services} times of ${facts?.mustGet}`, {
    hints: ["It must buy what is at X402_URL as often as X402_PURCHASES says, and print each body."],
  });
}

/** Runs the client's processes of a case one after the other, and gathers everything they signed. */
export async function runChannelCase(
  tested: ChannelClientCase,
  { scene, shops, way }: { scene: Scene; shops: Shops; way: string },
  options: RunClientOptions & Pick<JudgeOptions, "seed">,
): Promise<ChannelClientFacts> {
  const { facilitatorUrl, apiKey, rpcUrl } = scene;
  const { network, asset, amount: price } = scene.offer;
  const name = `${network.name}/${way}/${tested.name}`;
  const payer = payerOf(options.seed, name);
  const goods = goodsOf(options.seed, name);
  await scene.fund(payer, { way });
  const { resource } = shops.addressesOf(name);
  const most = depositInPrices * price;
  const requirements = channelRequirements(scene, way, resource);
  const book = createChannelBook({ facilitatorUrl, apiKey, requirements, resource });
  const { header } = options;
  const shop = createChannelCaseShop({ paid: tested.paid, scene, book, price, goods, header });
  shops.open(name, shop);

  const runs: ClientRun[] = [];
  for (const purchases of tested.runs) {
    const more = { X402_PURCHASES: `${purchases}`, X402_RPC_URL: rpcUrl };
    runs.push(await runClient({ resource, payer, goods, network, asset, most, more }, options));
  }
  const counts = await shop.counts();
  const gotBy = ({ output }: ClientRun) => new Set(output.match(new RegExp(`${goods}-\\d+`, "g"))).size;
  return {
    ...counts,
    most,
    price,
    runs,
    payments: counts.vouchers,
    transfers: await scene.transfersFrom(payer.address),
    services: runs.reduce((sum, run) => sum + gotBy(run), 0),
    gotLast: runs.map(gotBy).at(-1) ?? 0,
    mustGet: tested.mustGet ?? 0,
    ordered: tested.runs.reduce((sum, one) => sum + one, 0),
    exchanges: shop.lines(),
    links: [],
  };
}

/** The payment requirements of a shop that sells on channels. */
export function channelRequirements(
  { offer, recipient }: Pick<Scene, "offer" | "recipient">,
  way: string,
  resource: string,
) {
  const { network, asset, amount: price, facilitator: facilitatorContract } = offer;
  const { scheme, transfer: method } = methodFor({ scheme: payableNamed(way).scheme }, asset);
  const onNetwork = { ...network, facilitatorContract, payTo: "recipients" };
  const terms = { x402Version: 2, scheme, method, payTo: recipient, validForSeconds: 120 } as const;
  const { written } = makeOffer({ ...terms, network: onNetwork, asset, value: price }, resource);
  const extra = { ...written.extra, minDeposit: `${depositInPrices * price}` };
  return { ...written, amount: `${price}`, extra };
}

/** The facts about one case, from the vouchers, the chain and the processes. Its transfers are the deposits. */
export type ChannelClientFacts = PurchaseFacts &
  ChannelCounts & {
    runs: readonly ClientRun[];
    payments: number;
    /** The limit for all deposits together, `X402_MAX_AMOUNT`. */
    most: bigint;
    price: bigint;
    /** How many goods the last process got, and how many it had to get. */
    gotLast: number;
    mustGet: number;
    /** How many purchases all processes were asked to make. */
    ordered: number;
  };

/** The verdicts on a client that keeps channels, worst first. */
const verdicts = {
  deposited_again: { text: "deposited more than once", level: "wrong" },
  deposited_too_much: { text: "deposited more than allowed", level: "wrong" },
  signed_too_much: { text: "signed a higher ceiling than charge and price", level: "wrong" },
  hung: { text: "hung", level: "wrong" },
  not_recovered: { text: "bought nothing more from its channel", level: "wrong" },
  paid_not_served: { text: "was charged and printed nothing", level: "wrong" },
  not_paid_not_served: { text: "bought nothing", level: "wrong" },
  bought_too_few: { text: "bought less often than it should", level: "wrong" },
  stopped: { text: "stopped", level: "good" },
  bought: { text: "bought on one deposit", level: "good" },
} as const;

type ChannelVerdict = keyof typeof verdicts;

/** Judges by the signed deposits and ceilings and by the delivered goods. */
export function judgeChannelFacts(facts: ChannelClientFacts): Verdict & { verdict: ChannelVerdict } {
  const verdict = verdictOf(facts);
  const notes = [
    ...reasonsOf(facts, verdict),
    ...facts.runs.flatMap((run) => (facts.mustGet > 0 ? notesOf(run) : [])),
  ];
  return { verdict, ...verdicts[verdict], seen: describePurchase(facts), notes };
}

function verdictOf(facts: ChannelClientFacts): ChannelVerdict {
  const { deposits, most, tooHigh, runs, vouchers, services, gotLast, mustGet, ordered, transfers } = facts;
  if (deposits.length > 1 || transfers.length > 1) return "deposited_again";
  if (deposits.some((amount) => amount > most)) return "deposited_too_much";
  if (tooHigh.length > 0) return "signed_too_much";
  if (runs.some(({ end }) => end === undefined)) return "hung";
  if (gotLast >= mustGet) return mustGet > 0 || services >= ordered ? "bought" : "stopped";
  if (runs.length > 1) return "not_recovered";
  if (services > 0) return "bought_too_few";
  return vouchers === 0 || transfers.length === 0 ? "not_paid_not_served" : "paid_not_served";
}

/** Explains how the findings cost money. */
function reasonsOf(
  { deposits, tooHigh, price, most }: ChannelClientFacts,
  verdict: ChannelVerdict,
): string[] {
  const sum = deposits.reduce((total, amount) => total + amount, 0n);
  return [
    ...(deposits.length > 1
      ? [
          `${deposits.length} deposits of ${sum} in all, where the first covers every purchase: the rest is locked until the shop refunds it, or for withdrawDelay`,
        ]
      : []),
    ...(verdict === "not_recovered"
      ? ["what is left in its channel buys nothing until the shop refunds it, or for withdrawDelay"]
      : []),
    ...(sum > most ? [`deposits of ${sum}, where X402_MAX_AMOUNT allows ${most}`] : []),
    ...tooHigh.map(
      ({ voucher, max, charged }) =>
        `voucher ${voucher} lets the shop claim ${max}, where ${charged} were charged and the price is ${price}: it can claim the difference without selling anything`,
    ),
  ];
}
