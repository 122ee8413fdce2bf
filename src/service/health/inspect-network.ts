import { failureEndpoints } from "../../chain/chain.ts";
import { causeOf, expectAnswer, explainFailure } from "../../chain/deploy/endpoints.ts";
import { chainIdCall, type Head, headCall, readHead } from "../../chain/rpc/calls.ts";
import type { Rpc, RpcAnswer, RpcCall, RpcReader } from "../../chain/rpc/rpc.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import { rpcVariableOf } from "../../config/variables.ts";
import { waysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { readQuantity } from "../../protocol/hex.ts";
import { formatCount } from "../../protocol/token-units.ts";
import {
  type Accounts,
  type Check,
  type CheckContext,
  failed,
  type NetworkCheck,
  ok,
  warning,
} from "./check.ts";
import { batchSettlementCheck } from "./check-batch-settlement.ts";
import { assetsCheck, contractCheck, permit2Check } from "./check-contract.ts";
import { gasMoneyCheck, sponsorCheck, txNoncesCheck } from "./check-operators.ts";

/** All checks except those of the RPC endpoints, in the order of the report. */
const networkChecks: readonly NetworkCheck[] = [
  contractCheck,
  gasMoneyCheck,
  sponsorCheck,
  assetsCheck,
  permit2Check,
  batchSettlementCheck,
  txNoncesCheck,
];

export type InspectionOptions = Accounts & {
  network: NetworkConfig;
  /** Those of this version by default. */
  ways?: CheckContext["ways"];
  /** One for each RPC URL of the network, in order, without failover. */
  endpoints: readonly RpcReader[];
  nextTxNonce: CheckContext["nextTxNonce"];
  refusesUsedOperators?: CheckContext["refusesUsedOperators"];
  /** Unix milliseconds. */
  now: () => number;
  clock?: ClockTolerance | undefined;
};

export type Inspection = {
  checks: readonly Check[];
  /**
   * - `serve`: it can be served, perhaps with warnings;
   * - `later`: a required check could not be made, and may succeed later;
   * - `refuse`: it is not what was configured, or not safe to serve; see the fatal checks.
   */
  verdict: "serve" | "later" | "refuse";
};

type EndpointResult = EndpointState & { rpc: RpcReader; rest: readonly RpcAnswer[] | undefined };

/**
 * Compares a network with its configuration, for `doctor`, for the start of `serve`, and for a network that becomes
 * reachable later. Takes one request if the first endpoint is healthy. Never throws; changes nothing.
 */
export async function inspectNetwork(options: InspectionOptions): Promise<Inspection> {
  const { network, endpoints, operators, recoverer, sponsor, ways = waysToPay } = options;
  const calls = networkChecks.map((check) => check.calls({ network, operators, recoverer, sponsor, ways }));
  const results = await Promise.all(
    // The first endpoint also gets the calls of all checks; the others get them only if its answers cannot be used.
    endpoints.map((rpc, index) => inspectEndpoint(rpc, index === 0 ? calls.flat() : [], options)),
  );
  const counted = countCheck(network);
  const chosen = results.find(({ isFresh }) => isFresh) ?? results.find(({ head }) => head !== undefined);
  const ofEndpoints = results.flatMap((result, index) => {
    // A failing endpoint does not matter if another works; one on another chain is a configuration error.
    const isReplaced = chosen?.isFresh === true && !result.isOtherChain;
    return result.checks.map((check): Check => {
      const name = results.length === 1 ? check.name : `${check.name} ${index + 1}`;
      if (check.status !== "failed") return { ...check, name };
      if (isReplaced) return { ...check, name, status: "warning" };
      return results.every(({ isOtherChain }) => isOtherChain)
        ? { ...check, name, fatal: true }
        : { ...check, name };
    });
  });
  const confirming = checkConfirming(network, results.filter(({ isFresh }) => isFresh).length);
  const checks = [...ofEndpoints, ...(counted === undefined ? [] : [counted]), ...confirming];
  if (chosen?.head === undefined) {
    return {
      checks: [...checks, notInspected],
      verdict: checks.some(({ fatal }) => fatal) ? "refuse" : "later",
    };
  }
  const context: CheckContext = { ...options, ways, head: chosen.head };
  const answers = chosen.rest ?? (await chosen.rpc.ask(calls.flat()).catch(() => []));
  let start = 0;
  const found = await Promise.all(
    networkChecks.map((check, index) => {
      const count = calls[index]?.length ?? 0;
      start += count;
      return readCheck(check, answers.slice(start - count, start), context);
    }),
  );
  const all = [...checks, ...found.flatMap((one) => one.checks)];
  return {
    checks: all,
    verdict: all.some(({ fatal }) => fatal)
      ? "refuse"
      : found.some(({ isMissing }) => isMissing)
        ? "later"
        : "serve",
  };
}

/** Warns if there are too few endpoints to confirm a direct submission; undefined if there are enough. */
function countCheck({
  name,
  rpcUrls,
  forwardEndpoints = failureEndpoints,
}: NetworkConfig): Check | undefined {
  if (rpcUrls.length >= forwardEndpoints) return undefined;
  return warning(
    "RPC endpoints",
    "there is one, and its word is all there is for successes and failures; payments that were submitted directly to the token wait for x402-kit recover",
    `Name a second provider in ${rpcVariableOf(name)}.`,
  );
}

/** The names of these checks, by which readiness finds their details. */
export const chainIdCheckName = "chain id";
export const confirmingCheckName = "confirming";

/** Reports a network with several RPC endpoints if too few of them answer to confirm an outcome. */
function checkConfirming({ name, rpcUrls, successEndpoints = 1 }: NetworkConfig, fresh: number): Check[] {
  if (rpcUrls.length < failureEndpoints || fresh === 0 || fresh >= failureEndpoints) return [];
  const what = successEndpoints > fresh ? "every settle waits" : "every failure waits";
  const detail = `degraded: ${fresh} of ${rpcUrls.length} RPC endpoints can be used, and ${failureEndpoints} must say the same: ${what} until it is answered with 503`;
  const advice = `Mend the other, and name three in ${rpcVariableOf(name)}, so that one may fail.`;
  return [
    successEndpoints > fresh
      ? failed(confirmingCheckName, detail, { advice })
      : warning(confirmingCheckName, detail, advice),
  ];
}

const notInspected: Check = {
  name: "the rest",
  status: "skipped",
  detail: "was not looked at: there is no RPC endpoint to ask",
};

/** Reads the state of an endpoint and the answers to `rest` in one request. */
async function inspectEndpoint(
  rpc: RpcReader,
  rest: Parameters<Rpc["ask"]>[0],
  { network, now, clock = usualClockTolerance }: InspectionOptions,
): Promise<EndpointResult> {
  const startedAt = performance.now();
  try {
    const answers = await rpc.ask([...endpointCalls, ...rest]);
    const tookMs = Math.round(performance.now() - startedAt);
    const state = checkEndpoint(answers, { network, now: now(), clock });
    return {
      ...state,
      checks: [ok("RPC", `answers in ${tookMs} ms`), ...state.checks],
      rpc,
      rest: rest.length === 0 ? undefined : answers.slice(endpointCalls.length),
    };
  } catch (error) {
    const advice = `Check the URL in ${rpcVariableOf(network.name)}, and whether this machine may reach it.`;
    return {
      checks: [failed("RPC", causeOf(error), { advice })],
      isFresh: false,
      isOtherChain: false,
      rpc,
      rest: undefined,
    };
  }
}

/** Runs a check. One that cannot be made has failed; then `isMissing` is true if it is required. */
async function readCheck(
  { name, required, read }: NetworkCheck,
  answers: readonly RpcAnswer[],
  context: CheckContext,
): Promise<{ checks: readonly Check[]; isMissing: boolean }> {
  try {
    return { checks: await read(answers, context), isMissing: false };
  } catch (error) {
    const check = failed(name, explainFailure(error), { advice: "Run doctor again." });
    return { checks: [check], isMissing: required };
  }
}

/** How far an endpoint's newest block may differ from the clock of this machine, in seconds. */
export type ClockTolerance = { behind: number; ahead: number };

/** The usual tolerance: an older block is not the chain's newest, and one further ahead means that a clock is wrong. */
export const usualClockTolerance: ClockTolerance = { behind: 120, ahead: 30 };

/** The state of an endpoint: on the right chain, with its newest block, or on another chain. */
export type EndpointState = {
  checks: readonly Check[];
  head?: Head;
  isFresh: boolean;
  isOtherChain: boolean;
};

/** The calls for {@link checkEndpoint}. */
export const endpointCalls: readonly RpcCall[] = [chainIdCall, headCall];

/**
 * Checks that an RPC endpoint serves the network's chain and is up to date.
 *
 * @throws UndeterminedError when an answer cannot be used
 */
export function checkEndpoint(
  [chainIdAnswer, block]: readonly RpcAnswer[],
  { network, now, clock }: { network: NetworkConfig; now: number; clock: ClockTolerance },
): EndpointState {
  const chainId = expectAnswer("the chain id", chainIdAnswer, readQuantity);
  if (chainId !== BigInt(network.chainId)) {
    const detail = `the RPC serves chain ${chainId}, but ${network.name} is chain ${network.chainId}`;
    const advice = `${rpcVariableOf(network.name)} names a node of another network.`;
    return { checks: [failed(chainIdCheckName, detail, { advice })], isFresh: false, isOtherChain: true };
  }
  const head = expectAnswer("the newest block", block, readHead);
  const headCheck = checkHead(head, now, clock);
  return {
    checks: [ok(chainIdCheckName, `${chainId}`), headCheck],
    head,
    isFresh: headCheck.status === "ok",
    isOtherChain: false,
  };
}

function checkHead({ number, timestamp }: Head, now: number, clock: ClockTolerance): Check {
  const age = Math.floor(now / 1000) - Number(timestamp);
  const newest = `block ${formatCount(number)} is ${formatCount(Math.abs(age))} s`;
  if (age > clock.behind) {
    const advice = "The node has stopped following the chain, or the clock of this machine is wrong.";
    return failed("head", `${newest} old`, { advice });
  }
  if (age < -clock.ahead) {
    const advice = "The clock of this machine or that of the node is wrong.";
    return failed("head", `${newest} ahead of this machine's clock`, { advice });
  }
  return ok("head", `${newest} old`);
}
