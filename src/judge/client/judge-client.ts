import { availableParallelism } from "node:os";
import { keepsChannels, payableNamed, shortNameOf } from "../../methods/method-lists.ts";
import { sameAddress } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { ChannelClientCase } from "../channels/channel-client-cases.ts";
import { judgeChannelClient } from "../channels/judge-channel-client.ts";
import { type Finding, runCases, type Verdict } from "../frame/run-cases.ts";
import { goodsOf, type Offer, payerOf } from "../scene/offers.ts";
import { caseOn, describePurchase, type JudgeOptions, type PurchaseFacts } from "../scene/purchases.ts";
import { openScene, type Scene, type TokenTransfer } from "../scene/scene.ts";
import { createCaseShop, openShops, type Shops } from "./case-shop.ts";
import type { ClientCase } from "./client-cases.ts";
import {
  type ClientRun,
  notesOf,
  type RunClientOptions,
  requireWorkingClient,
  runClient,
} from "./run-client.ts";

export type JudgeClientOptions = JudgeOptions &
  RunClientOptions & {
    cases: readonly ClientCase[];
    /** The cases for clients that keep channels. */
    channelCases: readonly ChannelClientCase[];
    /** The short names of the payment methods to judge, one after the other. */
    ways: readonly string[];
    versions: readonly X402Version[];
    /** The delay of the slow shop's response. */
    slowMs: number;
  };

/** Clients mostly wait. With this many at once, a run takes less than 90 s even if every case times out. */
const atOncePerCore = 4;

/**
 * Runs a client against misbehaving shops, once per case and network, and judges it by its transfers on chain.
 *
 * @param onJudged called with the findings on each network, while its chains are still running
 * @throws {KitError} if the command cannot be started, or does not buy from a working shop
 */
export async function judgeClient(
  options: JudgeClientOptions,
  onJudged: (findings: readonly Finding<PurchaseFacts>[]) => Promise<void> = async () => {},
): Promise<readonly Finding<PurchaseFacts>[]> {
  await using shops = await openShops();
  const findings: Finding<PurchaseFacts>[] = [];
  for (const network of options.networks) {
    for (const way of options.ways) {
      const { scheme, versions: known } = payableNamed(way);
      const versions = options.versions.filter((version) => known.includes(version));
      const judge = keepsChannels(scheme) ? judgeChannelClient : judgeOn;
      findings.push(...(await judge({ network, way }, shops, { ...options, versions }, onJudged)));
    }
  }
  return findings;
}

async function judgeOn(
  on: { network: NetworkName; way: string },
  shops: Shops,
  options: JudgeClientOptions,
  onJudged: (findings: readonly Finding<PurchaseFacts>[]) => Promise<void>,
): Promise<readonly Finding<ClientFacts>[]> {
  const { cases, studio, knownNetworks, networkFile, signal } = options;
  const where = { ...on, knownNetworks, networkFile, studio, signal };
  await using scene = await openScene({ ...where, hasOtherNetwork: true });
  /** Kept open for their studio, which may be viewed until the end of the run. */
  const kept: Scene[] = [];
  await using _kept = {
    [Symbol.asyncDispose]: async () =>
      void (await Promise.all(kept.map((one) => one[Symbol.asyncDispose]()))),
  };
  const runOn = async (tested: ClientCase) => {
    if (tested.own === undefined) return runClientCase(tested, scene, shops, options);
    const own = await openScene({ ...where, ...tested.own });
    await using _own = studio === true ? undefined : own;
    if (studio === true) kept.push(own);
    // Awaited here, because the scene closes at the end of this block.
    return await runClientCase(tested, own, shops, options);
  };
  const findings = await runCases(
    cases.map((tested) => ({
      ...caseOn(tested, on, options),
      run: () => runOn(tested),
    })),
    judgeClientFacts,
    {
      atOnce: atOncePerCore * availableParallelism(),
      async afterFirst(finding) {
        requireWorkingClient(finding, options);
        // The token must be deployed before payers are funded with it.
        await scene.otherAsset();
        return finding.level === "good" ? undefined : "it is bad where nothing is wrong with the shop";
      },
    },
  );
  await onJudged(findings);
  return findings;
}

export async function runClientCase(
  tested: ClientCase,
  scene: Scene,
  shops: Shops,
  options: Omit<JudgeClientOptions, "channelCases">,
): Promise<ClientFacts> {
  const { seed, versions, header, slowMs } = options;
  const { network, method } = scene.offer;
  const name = `${network.name}/${shortNameOf(method)}/${tested.name}`;
  const payer = payerOf(seed, name);
  const goods = goodsOf(seed, name);
  await scene.fund(payer, { everywhere: tested.offersOthers === true });
  const places = shops.addressesOf(name);
  const shop = createCaseShop({ tested, scene, versions, ...places, goods, payer, header, slowMs });
  shops.open(name, shop);
  const runs = await Promise.all(
    Array.from({ length: tested.runs ?? 1 }, () =>
      runClient({ ...scene.offer, most: scene.offer.amount, ...places, payer, goods }, options),
    ),
  );
  await shop.idle();
  const inTime = await scene.transfersFrom(payer.address);
  if (tested.settlesLate === true) await shop.settleLate();
  const transfers = tested.settlesLate === true ? await scene.transfersFrom(payer.address) : inTime;
  return {
    transfers,
    late: transfers.length - inTime.length,
    leaks: shop.leaks,
    payments: shop.log.payments,
    mostPayments: tested.allowsOnePayment === true ? 1 : undefined,
    keepsGoods: tested.keepsGoods === true,
    allowed: scene.offer,
    runs,
    services: runs.filter(({ served }) => served).length,
    exchanges: shop.log.lines(),
    links: shop.log.links(),
  };
}

/** The verdicts on a client, worst first. */
const clientVerdicts = {
  paid_more_or_elsewhere: { text: "paid more or elsewhere than allowed", level: "wrong" },
  paid_twice: { text: "paid twice", level: "wrong" },
  payment_leaked: { text: "sent its payment to another origin", level: "wrong" },
  charged_late: { text: "charged after its payment should have expired", level: "wrong" },
  signed_again: { text: "signed another payment while the first may have been paid", level: "wrong" },
  paid_not_served: { text: "paid and not served although it could have been", level: "wrong" },
  nonce_shared: { text: "two runs signed the same payment", level: "wrong" },
  hung: { text: "hung", level: "wrong" },
  not_paid_not_served: { text: "not paid and not served", level: "good" },
  paid_once_stopped: { text: "paid once and stopped", level: "good" },
  paid_once_served: { text: "paid once and served", level: "good" },
} as const;

type ClientVerdict = keyof typeof clientVerdicts;

/** The facts about one case, from the chain and the processes. */
export type ClientFacts = PurchaseFacts & {
  /** The number of transfers after the client had ended. */
  late: number;
  /** The number of payments sent to another origin. */
  leaks: number;
  /** The number of distinct payments received, whatever their outcome. */
  payments: number;
  /** The most payments that the case allows; undefined if unlimited. */
  mostPayments: number | undefined;
  /** True if the shop delivers nothing for a payment whose response was lost. */
  keepsGoods: boolean;
  /** The offer that the payer may accept. */
  allowed: Offer;
  /** The client's processes. */
  runs: readonly ClientRun[];
};

/** Judges by the transfers on chain and the delivered goods, not by what the programs print. */
export function judgeClientFacts(facts: ClientFacts): Verdict & { verdict: ClientVerdict } {
  const verdict = verdictOf(facts);
  const notes = facts.runs.flatMap(notesOf);
  return { verdict, ...clientVerdicts[verdict], seen: describePurchase(facts), notes };
}

function verdictOf(facts: ClientFacts): ClientVerdict {
  const { transfers, late, leaks, payments, mostPayments, keepsGoods, allowed, runs, services } = facts;
  const isAllowed = ({ network, token, to, amount }: TokenTransfer) =>
    network === allowed.network.name &&
    sameAddress(token, allowed.asset.address) &&
    sameAddress(to, allowed.receiver) &&
    amount <= allowed.amount;
  if (!transfers.every(isAllowed)) return "paid_more_or_elsewhere";
  if (transfers.length > runs.length) return "paid_twice";
  if (leaks > 0) return "payment_leaked";
  if (late > 0) return "charged_late";
  if (mostPayments !== undefined && payments > mostPayments) return "signed_again";
  if (runs.some(({ end }) => end === undefined)) return "hung";
  if (transfers.length > services) return keepsGoods ? "paid_once_stopped" : "paid_not_served";
  if (transfers.length < services) return "nonce_shared";
  return services === 0 ? "not_paid_not_served" : "paid_once_served";
}
