import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { keepsChannels, payableNamed, shortNames } from "../../methods/method-lists.ts";
import { sameAddress } from "../../protocol/hex.ts";
import type { NetworkRegistry } from "../../protocol/networks.ts";
import { KitError } from "../../util/errors.ts";
import { claimSeconds } from "../channels/channel-shop-buyer.ts";
import type { ChannelShopCase } from "../channels/channel-shop-cases.ts";
import { judgeChannelShop } from "../channels/judge-channel-shop.ts";
import { type Finding, NotRun, runCases } from "../frame/run-cases.ts";
import { type FacilitatorLine, startFacilitatorLine } from "../scene/facilitator-line.ts";
import { caseOn, type JudgeOptions, type PurchaseFacts } from "../scene/purchases.ts";
import {
  describeEnd,
  endWithin,
  freePort,
  lastLines,
  type RunningCommand,
  startCommand,
} from "../scene/run-command.ts";
import { openScene, type Scene } from "../scene/scene.ts";
import {
  judgeShopFacts,
  runShopCase,
  type ShopCase,
  type ShopCaseOptions,
  type ShopFacts,
} from "./run-shop-case.ts";
import { type Answer, readAllTerms, readTerms, send, type Terms, wayNameOf } from "./shop-payment.ts";

export type JudgeShopOptions = JudgeOptions &
  Pick<ShopCaseOptions, "redelivers" | "lateMs"> & {
    cases: readonly ShopCase[];
    /** The cases for shops that sell on channels. */
    channelCases: readonly ChannelShopCase[];
    /** The URL of a running shop, or the command that starts one. */
    shop:
      | { url: string; otherUrl: string | undefined; facilitatorPort: number }
      | { command: readonly string[]; path: string; otherPath: string };
    /** The payment methods to judge, one after the other; by default the method of the shop's first offer. */
    ways?: readonly string[] | undefined;
    /** Overrides the time limits of a run. */
    limits?: RunLimits;
    /** Called when the facilitator that a running shop must use has started. */
    onFacilitator?(url: string, apiKey: string): void;
  };

/**
 * Sends good and bad buyers to a shop, makes its facilitator fail, and judges the shop by the transfers on chain.
 *
 * @param onJudged called with the findings on each network, while its chain and the shop are still running
 * @throws {KitError} if the shop cannot be started, does not answer, or does not ask for payment
 */
export async function judgeShop(
  options: JudgeShopOptions,
  onJudged: (findings: readonly Finding<PurchaseFacts>[]) => Promise<void> = async () => {},
): Promise<readonly Finding<PurchaseFacts>[]> {
  const { shop, knownNetworks, networkFile, studio, signal } = options;
  const all: Finding<PurchaseFacts>[] = [];
  for (const network of options.networks) {
    await using scene = await openScene({ network, knownNetworks, networkFile, studio, signal });
    const port = "command" in shop ? undefined : shop.facilitatorPort;
    await using line = await startFacilitatorLine(scene.facilitatorUrl, port);
    options.onFacilitator?.(line.url, scene.apiKey);
    await using started = "command" in shop ? await startShop(shop, scene, line.url, options) : undefined;
    const place = started ?? ("url" in shop ? shop : { url: "", otherUrl: undefined });
    const findings = await judgeShopAt(
      {
        url: place.url,
        otherUrl: place.otherUrl,
        scene,
        line,
        restart: started?.restart,
        // A different process after a restart.
        get running() {
          return started?.running;
        },
      },
      options,
    );
    await onJudged(findings);
    all.push(...findings);
  }
  return all;
}

export type ShopPlace = {
  url: string;
  otherUrl: string | undefined;
  scene: Scene;
  line: FacilitatorLine;
  /** Undefined for a shop that was not started here. */
  running: RunningCommand | undefined;
  /** Stops the shop and starts it again; undefined if it was not started here. */
  restart?: (() => Promise<void>) | undefined;
};

/** Judges a running shop, one payment method after the other. */
export async function judgeShopAt(
  place: ShopPlace,
  options: JudgeShopOptions,
): Promise<Finding<PurchaseFacts>[]> {
  const { url, otherUrl, running, restart, scene } = place;
  const { header, timeoutMs, knownNetworks } = options;
  const headers = header === undefined ? {} : { [header.name]: header.value };
  const first = await waitForAnswer(url, headers, running, options);
  const other = otherUrl === undefined ? undefined : await send(otherUrl, { headers, timeoutMs });
  const findings: Finding<PurchaseFacts>[] = [];
  for (const terms of requireTerms(url, first, scene, options)) {
    if (keepsChannels(terms.scheme)) {
      findings.push(...(await judgeChannelShop(terms, { url, headers, scene, restart }, options)));
      continue;
    }
    const sellsOther = other?.status === 402 && sells(other, terms, knownNetworks);
    findings.push(...(await judgeTerms(terms, { ...place, headers, sellsOther }, options)));
  }
  return findings;
}

/** Enough to be quick, and few enough for a shop that handles one request at a time. */
const atOnce = 6;

async function judgeTerms(
  terms: Terms,
  place: ShopPlace & { headers: Record<string, string>; sellsOther: boolean },
  options: JudgeShopOptions,
): Promise<Finding<ShopFacts>[]> {
  const { line, running } = place;
  const { cases, signal, limits: { startMs, endMs } = usualLimits } = options;
  const startedAt = performance.now();
  const leftOf = (ms: number) => startedAt + ms - performance.now();
  const requireTime = (ms: number) => {
    if (leftOf(ms) < 0) throw notJudged(`the run had taken ${ms / 1_000} s`);
  };
  const timeoutMs = () => Math.max(Math.min(answerTimeoutMs, Math.ceil(leftOf(endMs))), 1);
  let goods: Answer | undefined;
  const on = { network: terms.network.name, way: wayNameOf(terms) };
  return runCases(
    cases.map((tested) => ({
      ...caseOn(tested, on, options),
      async run() {
        signal?.throwIfAborted();
        if (running?.hasEnded() === true) throw notJudged(await sayEnd(running));
        requireTime(startMs);
        const facts = await runShopCase(tested, { ...place, ...options, terms, goods, timeoutMs });
        // Past `endMs` requests were cut short, so the facts say nothing about the shop.
        requireTime(endMs);
        return facts;
      },
    })),
    judgeShopFacts,
    {
      atOnce,
      async afterFirst({ facts }) {
        goods = facts?.goods;
        if (facts === undefined || facts.services === 0) requireAsked(line);
        return undefined;
      },
    },
  );
}

function notJudged(why: string): NotRun {
  return new NotRun(why, undefined, "not_judged");
}

/** Describes how a shop ended prematurely, with the last line of its output. */
async function sayEnd(running: RunningCommand): Promise<string> {
  const end = describeEnd(await running.ended);
  const [last = ""] = lastLines([running.stdout(), running.stderr()]).slice(-1);
  return `the shop had ended ${end}${last === "" ? "" : `: ${last.trim()}`}`;
}

/** A shop that uses another facilitator treats good and bad payments alike, so judging it is pointless. */
function requireAsked({ requests, url }: FacilitatorLine): void {
  if (requests > 0) return;
  throw new KitError(
    `The shop served nothing for a good payment, and made no request to the facilitator at ${url}`,
    {
      hints: [
        "A shop that is started here takes the facilitator's URL from X402_FACILITATOR_URL, and the key from X402_API_KEY; one that runs already must use the URL and the key that were printed.",
      ],
    },
  );
}

/** The time limits per payment method: when the last case may start, and when the last request must have its response. */
export type RunLimits = { startMs: number; endMs: number };

/** A payment method takes at most 90 s, even if the shop hangs. */
const usualLimits: RunLimits = { startMs: 60_000, endMs: 75_000 };

/** Longer than both responses of the slow facilitator together. */
const answerTimeoutMs = 10_000;

type StartedShop = AsyncDisposable & {
  url: string;
  otherUrl: string;
  readonly running: RunningCommand;
  restart(): Promise<void>;
};

async function startShop(
  { command, path, otherPath }: { command: readonly string[]; path: string; otherPath: string },
  scene: Scene,
  facilitatorUrl: string,
  options: JudgeShopOptions,
): Promise<StartedShop> {
  const port = await freePort();
  const { network, asset, payTo, amount } = scene.offer;
  const onChannels = options.ways?.some((way) => keepsChannels(payableNamed(way).scheme)) === true;
  const storage = await mkdtemp(join(tmpdir(), "x402-kit-judge-"));
  const start = () =>
    startCommand(command, {
      PORT: `${port}`,
      X402_FACILITATOR_URL: facilitatorUrl,
      X402_API_KEY: scene.apiKey,
      X402_PAY_TO: onChannels ? scene.recipient : payTo,
      X402_NETWORK: network.name,
      X402_CAIP2: network.caip2,
      X402_ASSET: asset.address,
      X402_ASSET_NAME: asset.name,
      X402_ASSET_VERSION: asset.version,
      X402_ASSET_DECIMALS: `${asset.decimals}`,
      X402_PRICE: `${amount}`,
      ...(onChannels && { X402_STORAGE: storage, X402_CLAIM_SECONDS: `${claimSeconds}` }),
    });
  let running = await start();
  const origin = `http://127.0.0.1:${port}`;
  const url = `${origin}${path}`;
  return {
    url,
    otherUrl: `${origin}${otherPath}`,
    get running() {
      return running;
    },
    async restart() {
      await running[Symbol.asyncDispose]();
      running = await start();
      await waitForAnswer(url, {}, running, options);
    },
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      await rm(storage, { recursive: true, force: true });
    },
  };
}

/** Polls the shop until its first response. */
async function waitForAnswer(
  url: string,
  headers: Record<string, string>,
  running: RunningCommand | undefined,
  { timeoutMs, signal }: JudgeShopOptions,
): Promise<Answer> {
  const until = performance.now() + timeoutMs;
  for (;;) {
    signal?.throwIfAborted();
    const left = until - performance.now();
    const answer = await send(url, { headers, timeoutMs: Math.max(Math.ceil(left), 1) });
    if (answer !== undefined) return answer;
    const end = running === undefined ? await sleep(50) : await endWithin(running, 50, signal);
    if (running !== undefined && end !== undefined) {
      await running.outputEnded;
      throw shopError(`The shop ended ${describeEnd(end)} before it answered at ${url}`, running);
    }
    if (left <= 0)
      throw shopError(`The shop gave no answer at ${url} within ${timeoutMs / 1_000} s`, running);
  }
}

/** The offers to judge, the first for each payment method: on this network, in the token that buyers have. */
function requireTerms(
  url: string,
  answer: Answer,
  {
    network: { name: network },
    offer: {
      asset: { address: asset },
    },
  }: Scene,
  { knownNetworks, ways }: JudgeShopOptions,
): readonly Terms[] {
  if (answer.status !== 402 && (answer.status < 200 || answer.status > 299)) {
    throw new KitError(`The shop answers ${answer.status} at ${url}, where a 402 is due`, {
      hints: [
        answer.body.slice(0, 200),
        "Name the path of what it sells with --path, or the whole address with --url.",
      ],
    });
  }
  const all = readAllTerms(answer, knownNetworks);
  const onNetwork = all.filter((one) => one.network.name === network);
  const payable = onNetwork.filter((one) => sameAddress(one.asset.address, asset));
  const [first] = payable;
  const plain = payable.find(({ scheme }) => !keepsChannels(scheme));
  if (first !== undefined) {
    // A shop that only sells on channels needs another `X402_PAY_TO`, so its payment method must be named in `ways`.
    const usual = plain === undefined ? shortNames.slice(0, 1) : [wayNameOf(plain)];
    return (ways ?? usual).map((way) => requireWay(way, payable));
  }
  if (onNetwork.length > 0) {
    throw new KitError(`The shop wants payment in ${onNetwork[0]?.asset.address}, not in ${asset}`, {
      hints: ["A shop that is started here takes the token from X402_ASSET."],
    });
  }
  if (answer.status !== 402)
    throw new KitError(`The shop answers ${answer.status} at ${url} without a payment`, {
      hints: [
        "Every case would be the same: served without payment. Let the shop answer 402 there, before it serves.",
        "If it sells somewhere else: --path PATH, or with --url the whole address.",
      ],
    });
  const asked = [...new Set(all.map((one) => one.network.name))];
  throw new KitError(
    asked.length === 0
      ? `The shop's 402 at ${url} has no terms that can be read`
      : `The shop wants payment on ${asked.join(", ")}, not on ${network}`,
    { hints: asked.length === 0 ? [] : [`Choose the network with --network ${asked[0]}`] },
  );
}

function requireWay(name: string, offers: readonly Terms[]): Terms {
  const found = offers.find((one) => wayNameOf(one) === name);
  if (found !== undefined) return found;
  const offered = [...new Set(offers.map(wayNameOf))];
  throw new KitError(`The shop's 402 has no offer by ${name}`, {
    hints: [`It has offers by ${offered.join(", ")}: --ways ${offered.join(",")}`],
  });
}

/** Returns true if a response offers the same terms, so that a payment fits both resources. */
function sells(answer: Answer, { network, payTo, value, asset }: Terms, known: NetworkRegistry): boolean {
  return readTerms(answer, known).some(
    (other) =>
      other.network.name === network.name &&
      other.payTo === payTo &&
      other.value === value &&
      other.asset.address === asset.address,
  );
}

function shopError(message: string, running: RunningCommand | undefined): KitError {
  return new KitError(message, {
    hints: [
      ...lastLines([running?.stdout() ?? "", running?.stderr() ?? ""]),
      "It must listen at PORT, sell at --path, and use X402_FACILITATOR_URL, X402_API_KEY and X402_PAY_TO.",
    ],
  });
}
