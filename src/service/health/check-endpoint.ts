import { expectAnswer } from "../../chain/deploy/endpoints.ts";
import { formatCount } from "../../chain/deploy/units.ts";
import { type Head, headCall, readHead } from "../../chain/rpc/calls.ts";
import type { RpcAnswer, RpcCall } from "../../chain/rpc/rpc.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import { rpcVariableOf } from "../../config/variables.ts";
import { readQuantity } from "../../protocol/hex.ts";
import { type Check, failed, ok } from "./check.ts";

/** How an endpoint's newest block may differ from the clock of this machine, in seconds. */
export type ClockTolerance = { behind: number; ahead: number };

/** The usual tolerance: an older head is not the chain's head, and a later one means that a clock is wrong. */
export const usualClockTolerance: ClockTolerance = { behind: 120, ahead: 30 };

/** The state of an endpoint: on the right chain, with its newest block, or on another chain. */
export type EndpointState = {
  checks: readonly Check[];
  head?: Head;
  isFresh: boolean;
  isOtherChain: boolean;
};

/** What {@link checkEndpoint} reads. */
export const endpointCalls: readonly RpcCall[] = [{ method: "eth_chainId", params: [] }, headCall];

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
    return { checks: [failed("chain id", detail, { advice })], isFresh: false, isOtherChain: true };
  }
  const head = expectAnswer("the newest block", block, readHead);
  const headCheck = checkHead(head, now, clock);
  return {
    checks: [ok("chain id", `${chainId}`), headCheck],
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
