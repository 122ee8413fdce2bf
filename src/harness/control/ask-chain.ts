import { z } from "zod";
import { createLocalRpc, RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import type { RpcAnswer } from "../../chain/rpc/rpc.ts";
import { askPayerState, type PayerState } from "../../methods/exact-eip3009/on-chain/state.ts";
import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import { findPaymentUse, type ReadableChain } from "../../observe/capture/payment-use.ts";
import type { Address, Hex } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { requestJson } from "../../util/http-client.ts";
import { statesKept } from "../nodes/launch-anvil.ts";
import type { ControlledHarness } from "./controlled-harness.ts";
import { askHarness } from "./find-harness.ts";

/** Local blocks are at most this far apart. */
const blockTimeMs = 1_000;

/** A local chain as people's questions about a payment are asked of it; undefined where it does not run here. */
export function readableChainOf(
  chains: ControlledHarness["chains"],
  network: NetworkName | null,
): ReadableChain | undefined {
  const chain = network === null ? undefined : chains[network];
  if (chain === undefined) return undefined;
  return { ...chain, blockTimeMs, statesKept, ask: askNode(chain.rpcUrl) };
}

/** Asks a local node. */
export function askNode(rpcUrl: string): ReadableChain["ask"] {
  const rpc = createLocalRpc(rpcUrl);
  return async (method, ...params): Promise<RpcAnswer> => {
    try {
      return { result: await rpc.request(method, ...params) };
    } catch (error) {
      if (!(error instanceof RpcRefusal)) throw error;
      return { error: { code: error.code, message: error.message, data: undefined } };
    }
  };
}

/** An authorization by what its token knows it by. */
export type UsableAuthorization = {
  network: NetworkName;
  asset: Address;
  payment: Pick<SignedPayment, "payer" | "nonce">;
  settlementId: Hex;
};

/**
 * How the chain of an `up` says that an authorization was used or cancelled, by anyone.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 * @returns null when it is unused; undefined when no chain can be asked there, as at `mock` and `serve`
 */
export async function askUse(
  origin: string,
  { network, asset, payment, settlementId }: UsableAuthorization,
): Promise<PaymentUse | null | undefined> {
  try {
    const chain = (await askHarness(origin))?.networks[network];
    if (chain === undefined) return undefined;
    const { chainId, rpcUrl } = chain;
    const readable = {
      network: { name: network, chainId },
      asset: { ...chain.asset, address: asset },
      ask: askNode(rpcUrl),
    };
    return (await findPaymentUse(readable, { payment, settlementId })) ?? null;
  } catch {
    // Its nodes may listen on another machine than this, or the token is none.
    return undefined;
  }
}

/**
 * What stands in the way of a payment by the newest block of the chain of an `up`.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 * @returns undefined when no chain can be asked there, as at `mock` and `serve`, or it does not say
 */
export async function askState(
  origin: string,
  { network, asset, payment }: Omit<UsableAuthorization, "settlementId">,
): Promise<PayerState | undefined> {
  try {
    const chain = (await askHarness(origin))?.networks[network];
    return chain && (await askPayerState(askNode(chain.rpcUrl), { ...payment, asset }, "latest"));
  } catch {
    // Its nodes may listen on another machine than this, or the token is none.
    return undefined;
  }
}

/** Chains answer from memory. */
const answersWithinMs = 5_000;

const chainsSchema = z.array(z.object({ network: z.string(), time: z.int() }));
const clockSchema = z.object({ now: z.int() });

/**
 * The time by which an `up` or `mock` at a URL judges payments on a network, in unix seconds: its chain's, or the mock's.
 * Undefined where what answers there has no time of its own, as `serve` has none.
 *
 * @param origin such as `http://127.0.0.1:4402`, without `/v1`
 */
export async function askTime(origin: string, network: NetworkName): Promise<bigint | undefined> {
  const read = async (path: string) => {
    try {
      return (await requestJson(`${origin}${path}`, { timeoutMs: answersWithinMs })).body;
    } catch {
      // It has no such route.
      return undefined;
    }
  };
  const chains = chainsSchema.safeParse(await read("/harness/chains")).data;
  const chain = chains?.find((one) => one.network === network);
  const time = chain?.time ?? clockSchema.safeParse(await read("/__clock")).data?.now;
  return time === undefined ? undefined : BigInt(time);
}
