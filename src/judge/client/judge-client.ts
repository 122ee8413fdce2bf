import { mkdtemp, readFile, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { methodNamed, shortNameOf } from "../../methods/method-lists.ts";
import { sameAddress } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { KitError } from "../../util/errors.ts";
import { type Finding, runCases, type Verdict } from "../frame/run-cases.ts";
import { type CasePayer, goodsOf, type Offer, payerOf } from "../scene/offers.ts";
import { caseOn, describePurchase, type JudgeOptions, type PurchaseFacts } from "../scene/purchases.ts";
import {
  type CommandEnd,
  describeEnd,
  endWithin,
  lastLines,
  type RunningCommand,
} from "../scene/run-command.ts";
import { openScene, type Scene, type TokenTransfer } from "../scene/scene.ts";
import { createCaseShop, openShops, type Shops } from "./case-shop.ts";
import type { ClientCase } from "./client-cases.ts";

export type JudgeClientOptions = JudgeOptions & {
  /** Starts the client with these variables. */
  start(env: Readonly<Record<string, string>>): Promise<RunningCommand>;
  cases: readonly ClientCase[];
  /** How it is to pay, one way after the other: short names of payment methods. */
  ways: readonly string[];
  versions: readonly X402Version[];
  /** The delay of the slow shop's answer. */
  slowMs: number;
};

/** The result of one process of the client. */
export type ClientRun = {
  /** Undefined when it was killed. */
  end: CommandEnd | undefined;
  /** True if it printed or saved the goods. */
  served: boolean;
  stdout: string;
  stderr: string;
};

/** Clients mostly wait. With this many at once, a run takes less than 90 s even if every case times out. */
const atOncePerCore = 4;

/**
 * Runs a client once for each case and network, against misbehaving shops, and judges it by its transfers on chain.
 *
 * @param onJudged called with the findings of each network, while its chains still run
 * @throws {KitError} when the command cannot be started, or does not buy from a working shop
 */
export async function judgeClient(
  options: JudgeClientOptions,
  onJudged: (findings: readonly Finding<ClientFacts>[]) => Promise<void> = async () => {},
): Promise<readonly Finding<ClientFacts>[]> {
  await using shops = await openShops();
  const findings: Finding<ClientFacts>[] = [];
  for (const network of options.networks) {
    for (const way of options.ways) {
      const known = methodNamed(way).versions;
      const versions = options.versions.filter((version) => known.includes(version));
      findings.push(...(await judgeOn({ network, way }, shops, { ...options, versions }, onJudged)));
    }
  }
  return findings;
}

async function judgeOn(
  on: { network: NetworkName; way: string },
  shops: Shops,
  options: JudgeClientOptions,
  onJudged: (findings: readonly Finding<ClientFacts>[]) => Promise<void>,
): Promise<readonly Finding<ClientFacts>[]> {
  const { cases, studio, knownNetworks, networkFile, signal } = options;
  const where = { ...on, knownNetworks, networkFile, studio, signal };
  await using scene = await openScene({ ...where, hasOtherNetwork: true });
  /** Those whose studio is looked at once everything has run. */
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
        // Must be deployed before payers are funded with it.
        await scene.otherAsset();
        return finding.level === "good" ? undefined : "it is bad where nothing is wrong with the shop";
      },
    },
  );
  await onJudged(findings);
  return findings;
}

/**
 * Requires that a client buys from a working shop.
 *
 * @throws {KitError} says what the client failed to do, with the end of its output
 */
export function requireWorkingClient(
  { verdict, facts }: Pick<Finding<ClientFacts>, "verdict" | "facts">,
  options: Pick<JudgeClientOptions, "timeoutMs" | "versions">,
): void {
  const problem = facts && problemOf(verdict, facts, options);
  if (facts === undefined || problem === undefined) return;
  throw new KitError(problem, {
    hints: [
      ...lastLines(facts.runs.flatMap(({ stdout, stderr }) => [stdout, stderr])),
      "It must fetch X402_URL, pay with X402_PRIVATE_KEY when asked, print the body or save it in X402_OUTPUT, and exit with 0.",
    ],
  });
}

function problemOf(
  verdict: string,
  { runs: [run], exchanges, payments, transfers }: ClientFacts,
  { timeoutMs, versions }: Pick<JudgeClientOptions, "timeoutMs" | "versions">,
): string | undefined {
  if (run === undefined) return undefined;
  const { end, served } = run;
  const shown = end === undefined ? "" : describeEnd(end);
  const asked = exchanges.length > 0;
  if (end === undefined && transfers.length <= 1) {
    const what = asked ? "" : ", and made no request to the shop";
    return `The command still ran after ${timeoutMs / 1_000} s${what}; it was ended`;
  }
  if (!asked) return `The command ended ${shown} and never requested X402_URL`;
  if (verdict === "not_paid_not_served") {
    const answer = exchanges.at(-1)?.split(" → ").at(-1);
    if (payments > 0) return `The command's payment was refused (${answer}), and it ended ${shown}`;
    const spoken = versions.map((version) => `v${version}`).join(" and ");
    return `The command requested X402_URL, which speaks ${spoken}, and did not pay; it ended ${shown}`;
  }
  if (verdict === "paid_not_served") {
    return `The command paid, and printed nothing of what it got; it ended ${shown}`;
  }
  if (served && end !== undefined && end.code !== 0) {
    return `The command got what it paid for, and yet ended ${shown}: it must exit with 0`;
  }
  return undefined;
}

export async function runClientCase(
  tested: ClientCase,
  scene: Scene,
  shops: Shops,
  options: JudgeClientOptions,
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
    Array.from({ length: tested.runs ?? 1 }, () => runOnce(scene, places.resource, payer, goods, options)),
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

async function runOnce(
  scene: Scene,
  resource: string,
  payer: CasePayer,
  goods: string,
  { start, header, timeoutMs, signal }: JudgeClientOptions,
): Promise<ClientRun> {
  const { network, asset, amount } = scene.offer;
  const folder = await mkdtemp(join(tmpdir(), "x402-kit-judge-"));
  const output = join(folder, "output");
  try {
    await using running = await start({
      X402_URL: resource,
      X402_PRIVATE_KEY: payer.privateKey,
      X402_NETWORK: network.name,
      X402_CAIP2: network.caip2,
      X402_ASSET: asset.address,
      X402_MAX_AMOUNT: `${amount}`,
      X402_OUTPUT: output,
      ...(header !== undefined && { X402_HEADER: `${header.name}: ${header.value}` }),
    });
    const end = await endWithin(running, timeoutMs, signal);
    if (end !== undefined) await running.outputEnded;
    const saved = await readFile(output, "utf8").catch(() => "");
    const stdout = running.stdout();
    return { end, served: `${stdout}${saved}`.includes(goods), stdout, stderr: running.stderr() };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
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
  /** How many transfers came after the client had ended. */
  late: number;
  /** How many payments came to another origin. */
  leaks: number;
  /** How many different payments came, whatever became of them. */
  payments: number;
  /** How many the case allows; undefined where that is not limited. */
  mostPayments: number | undefined;
  /** The shop delivers nothing for a payment whose answer was lost. */
  keepsGoods: boolean;
  /** The offer that the payer may accept. */
  allowed: Offer;
  /** The processes of the client. */
  runs: readonly ClientRun[];
};

/** Judges by transfers on chain and delivered goods, not by what programs print. */
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

/** Notes where the exit code contradicts the facts. */
function notesOf({ end, served }: ClientRun): string[] {
  if (end === undefined) return ["it was ended when its time was over"];
  if (served && end.code !== 0) return [`it got the goods, and exited with ${end.code ?? end.signal}`];
  if (!served && end.code === 0) return ["it got nothing, and exited with 0"];
  return [];
}
