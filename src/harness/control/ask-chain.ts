import { z } from "zod";
import { askNode } from "../../chain/rpc/calls.ts";
import type { KnownPayment } from "../../methods/on-chain/nonces.ts";
import { askPayerState } from "../../methods/on-chain/payer-state.ts";
import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import type { Deployment } from "../../observe/explain/deployment.ts";
import {
  createUseFinder,
  findPaymentUse,
  type ReadableChain,
  readOwed,
  transactionOf,
} from "../../observe/studio/chain-questions.ts";
import type { PaymentChain } from "../../observe/studio/payment-detail.ts";
import type { Hex } from "../../protocol/hex.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import { payToPolicies } from "../../protocol/signed-payment.ts";
import { strictnesses } from "../../protocol/strictness.ts";
import { requestJson } from "../../util/http-client.ts";
import type { ControlledHarness } from "../run/running-harness.ts";
import { askHarness, type RunningNetwork } from "./description.ts";

/*
 * Questions to what runs at an `origin`, such as `http://127.0.0.1:4402`, without `/v1`.
 */

/** A local chain as people's questions about a payment are asked of it; undefined where it does not run here. */
export function readableChainOf(
  chains: ControlledHarness["chains"],
  network: NetworkName | null,
): ReadableChain | undefined {
  const chain = network === null ? undefined : chains[network];
  if (chain === undefined) return undefined;
  return { ...chain, ask: askNode(chain.rpcUrl) };
}

/** An authorization by what its token knows it by. */
export type UsableAuthorization = {
  network: NetworkName;
  payment: KnownPayment;
  settlementId: Hex;
};

/** Asks the chain of an `up`; undefined when none can be asked there, as at `mock` and `serve`, or it does not say. */
async function askChain<T>(
  origin: string,
  network: NetworkName,
  question: (chain: RunningNetwork) => Promise<T>,
): Promise<T | undefined> {
  try {
    const chain = (await askHarness(origin))?.networks[network];
    return chain && (await question(chain));
  } catch {
    // Its nodes may listen on another machine than this, or the token is none.
    return undefined;
  }
}

/** How the chain of an `up` says that an authorization was used or cancelled, by anyone: null when it is unused. */
export const askUse = (origin: string, { network, payment, settlementId }: UsableAuthorization) =>
  askChain(origin, network, async ({ chainId, rpcUrl, facilitatorContract }): Promise<PaymentUse | null> => {
    const readable = {
      network: { name: network, chainId },
      asset: { address: payment.asset },
      facilitatorContract,
      ask: askNode(rpcUrl),
    };
    return (await findPaymentUse(readable, { payment, settlementId })) ?? null;
  });

/** The obstacles to a payment by the newest block of the chain of an `up`. */
export const askState = (origin: string, { network, payment }: Omit<UsableAuthorization, "settlementId">) =>
  askChain(origin, network, ({ rpcUrl }) => askPayerState(askNode(rpcUrl), payment, "latest"));

/** Chains answer from memory. */
const answersWithinMs = 5_000;

/** The JSON at a URL; undefined where there is none. */
async function read(url: string): Promise<unknown> {
  try {
    return (await requestJson(url, { timeoutMs: answersWithinMs })).body;
  } catch {
    return undefined;
  }
}

const chainsSchema = z.array(z.object({ network: z.string(), time: z.int() }));
const clockSchema = z.object({ now: z.int() });

/**
 * The time by which an `up` or `mock` at a URL judges payments on a network, in unix seconds: its chain's, or the mock's.
 * Undefined where what answers there has no time of its own, as `serve` has none.
 */
export async function askTime(origin: string, network: NetworkName): Promise<bigint | undefined> {
  const chains = chainsSchema.safeParse(await read(`${origin}/harness/chains`)).data;
  const chain = chains?.find((one) => one.network === network);
  const time = chain?.time ?? clockSchema.safeParse(await read(`${origin}/__clock`)).data?.now;
  return time === undefined ? undefined : BigInt(time);
}

const supportedSchema = z.object({
  kinds: z.array(
    z.object({
      extra: z
        .object({ payTo: z.enum(payToPolicies), strictness: z.enum(strictnesses).optional() })
        .optional()
        .catch(undefined),
    }),
  ),
});

/** By which rules the facilitator at a URL judges payments, as its `/supported` says; nothing where that does not tell. */
export async function askPolicy(origin: string): Promise<Pick<Deployment, "payTo" | "strictness">> {
  const { kinds = [] } = supportedSchema.safeParse(await read(`${origin}/supported`)).data ?? {};
  const { payTo, strictness } = kinds.find(({ extra }) => extra !== undefined)?.extra ?? {};
  return { payTo, strictness };
}

/** The state of payments on the local chains. */
export function createPaymentChain(chains: ControlledHarness["chains"]): PaymentChain {
  return {
    transaction: (record) =>
      transactionOf(record, readableChainOf(chains, record.request?.knownNetwork.name ?? null)),
    authorizationUse: createUseFinder(({ knownNetwork }) => readableChainOf(chains, knownNetwork.name)),
    async owed(network, receiver, token) {
      const chain = readableChainOf(chains, network);
      return chain && readOwed(chain, receiver, token);
    },
  };
}
