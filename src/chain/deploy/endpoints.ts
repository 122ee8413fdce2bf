import type { NetworkConfig } from "../../config/serve-config.ts";
import { rpcVariableOf } from "../../config/variables.ts";
import { create2Deployer, create2DeployerCode, missingDeployerHints } from "../../protocol/create2.ts";
import { readQuantity } from "../../protocol/hex.ts";
import type { Network } from "../../protocol/networks.ts";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import { chainIdCall } from "../rpc/calls.ts";
import { createHttpRpc } from "../rpc/http-rpc.ts";
import { describeError, type Rpc, type RpcAnswer, type RpcReader } from "../rpc/rpc.ts";

/** Opens a separate client for each RPC URL of a network, without failover. */
export function openEndpoints(network: Network & Pick<NetworkConfig, "rpcUrls">): readonly Rpc[] {
  const { name, chainId, rpcUrls } = network;
  return rpcUrls.map((url) => createHttpRpc({ network: name, chainId, urls: [url] }));
}

/**
 * Returns the first RPC endpoint that answers. A transaction should be looked up at the node it was sent to.
 *
 * @throws KitError when it serves another chain, or none answers
 */
export async function chooseEndpoint(network: Network & Pick<NetworkConfig, "rpcUrls">): Promise<RpcReader> {
  const failures: string[] = [];
  for (const [index, rpc] of openEndpoints(network).entries()) {
    try {
      await requireNetwork(rpc, network);
      return rpc;
    } catch (error) {
      if (!(error instanceof UndeterminedError)) throw error;
      failures.push(`Endpoint ${index + 1}: ${causeOf(error)}`);
    }
  }
  throw new UndeterminedError(`No RPC endpoint of ${network.name} answers`, { hints: failures });
}

/**
 * Requires that an RPC serves a network, before anything is sent to it.
 *
 * @throws KitError when it serves another
 */
export async function requireNetwork(rpc: RpcReader, { name, chainId }: Network): Promise<void> {
  const [answer] = await rpc.ask([chainIdCall]);
  const served = expectAnswer("the chain id", answer, readQuantity);
  if (served !== BigInt(chainId)) {
    throw new KitError(`The RPC serves chain ${served}, but ${name} is chain ${chainId}`, {
      hints: [`Correct ${rpcVariableOf(name)}.`],
    });
  }
}

/**
 * Requires that the chain has the CREATE2 deployer with the expected code.
 *
 * @throws KitError that says how to get it there
 */
export async function requireCreate2Deployer(rpc: RpcReader, { name }: Network): Promise<void> {
  const [answer] = await rpc.ask([{ method: "eth_getCode", params: [create2Deployer, "latest"] }]);
  const code = expectAnswer("the code of the CREATE2 deployer", answer, (result) =>
    typeof result === "string" ? result : undefined,
  );
  if (code.toLowerCase() !== create2DeployerCode) {
    throw new KitError(`${name} cannot be deployed to`, { hints: missingDeployerHints });
  }
}

/**
 * Parses a node's answer; `read` returns undefined if it cannot.
 *
 * @throws UndeterminedError when the node refused, or answered something else
 */
export function expectAnswer<T>(
  what: string,
  answer: RpcAnswer | undefined,
  read: (result: unknown) => T | undefined,
): T {
  if (answer?.error !== undefined) {
    throw new UndeterminedError(`The RPC did not give ${what}: ${describeError(answer.error)}`);
  }
  const value = read(answer?.result);
  if (value === undefined) throw new UndeterminedError(`The RPC gave no usable answer to ${what}`);
  return value;
}

/** Explains a failure in one line for an operator. Errors of the chain contain no URL. */
export function explainFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = causeOf(error);
  return cause === error.message ? cause : `${error.message.replace(/; try again$/, "")}: ${cause}`;
}

/** Returns the message of the cause, without the wrapper made for the caller. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error instanceof KitError && error.cause instanceof Error ? error.cause.message : error.message;
}

/** A network, and an endpoint that serves it. */
export type OnChain = { rpc: RpcReader; network: NetworkConfig };
