import type { NetworkConfig } from "../config/network-config.ts";
import { rpcVariables } from "../config/variables.ts";
import { expectAnswer } from "../deploy/expect-answer.ts";
import { causeOf } from "../deploy/explain-failure.ts";
import { formatCount } from "../deploy/units.ts";
import type { Head } from "../rpc/calls.ts";
import { headCall, readHead } from "../rpc/calls.ts";
import { readQuantity } from "../rpc/read-hex.ts";
import type { Rpc } from "../rpc/rpc.ts";
import type { Check } from "./check.ts";

/** An RPC endpoint that can be asked about the rest, with the newest block it gave. */
export type UsableEndpoint = { rpc: Pick<Rpc, "ask">; head: Head };

/** A head older than this, in seconds, is not the chain's head. */
const staleSeconds = 120;
/** A head further ahead of the clock than this, in seconds: one of the two is wrong. */
const futureSeconds = 30;

/** Looks at each RPC endpoint of a network by itself, and finds one that the others can be judged through. */
export async function checkEndpoints(
  network: NetworkConfig,
  rpcs: readonly Pick<Rpc, "ask">[],
  now: () => number,
): Promise<{ checks: readonly Check[]; usable: UsableEndpoint | undefined }> {
  const results = await Promise.all(rpcs.map((rpc) => checkEndpoint(network, rpc, now)));
  const usable = results.find((result) => result.usable !== undefined)?.usable;
  const checks = results.flatMap((result, index) =>
    result.checks.map((check): Check => {
      const numbered = results.length === 1 ? check : { ...check, name: `${check.name} ${index + 1}` };
      // What one endpoint lacks another has; but one of another chain is there by mistake.
      return check.status === "failed" && usable !== undefined && !result.isOtherChain
        ? { ...numbered, status: "warning" }
        : numbered;
    }),
  );
  return { checks: usable === undefined ? [...checks, nothingElse] : checks, usable };
}

const nothingElse: Check = {
  name: "the rest",
  status: "failed",
  detail: "was not looked at: there is no RPC endpoint to ask",
};

type EndpointResult = { checks: readonly Check[]; usable?: UsableEndpoint; isOtherChain?: boolean };

async function checkEndpoint(
  network: NetworkConfig,
  rpc: Pick<Rpc, "ask">,
  now: () => number,
): Promise<EndpointResult> {
  const variable = rpcVariables[network.name];
  const startedAt = performance.now();
  let chainId: bigint;
  let head: Head;
  try {
    const [chainIdAnswer, block] = await rpc.ask([{ method: "eth_chainId", params: [] }, headCall]);
    chainId = expectAnswer("the chain id", chainIdAnswer, readQuantity);
    head = expectAnswer("the newest block", block, readHead);
  } catch (error) {
    const advice = `Check the URL in ${variable}, and whether this machine may reach it.`;
    return { checks: [{ name: "RPC", status: "failed", detail: causeOf(error), advice }] };
  }
  const reached: Check = {
    name: "RPC",
    status: "ok",
    detail: `answers in ${Math.round(performance.now() - startedAt)} ms`,
  };
  if (chainId !== BigInt(network.chainId)) {
    const detail = `it is ${chainId}, but that of ${network.name} is ${network.chainId}`;
    const advice = `${variable} names a node of another network.`;
    return { checks: [reached, { name: "chain id", status: "failed", detail, advice }], isOtherChain: true };
  }
  const chain: Check = { name: "chain id", status: "ok", detail: `${chainId}` };
  const age = Math.floor(now() / 1000) - Number(head.timestamp);
  const newest = `block ${formatCount(head.number)} is ${formatCount(Math.abs(age))} s`;
  if (age > staleSeconds) {
    const advice = "The node has stopped following the chain: mend it, or use another.";
    return { checks: [reached, chain, { name: "head", status: "failed", detail: `${newest} old`, advice }] };
  }
  if (age < -futureSeconds) {
    const advice = "The clock of this machine or that of the node is wrong.";
    const detail = `${newest} ahead of this machine's clock`;
    return { checks: [reached, chain, { name: "head", status: "failed", detail, advice }] };
  }
  return {
    checks: [reached, chain, { name: "head", status: "ok", detail: `${newest} old` }],
    usable: { rpc, head },
  };
}
