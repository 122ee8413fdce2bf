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
 * Queries of a running harness, mock or service. `origin` is its URL without `/v1`, such as `http://127.0.0.1:4402`.
 */

/** Returns a local chain in the form that payment explanations query; undefined if it does not run here. */
export function readableChainOf(
  chains: ControlledHarness["chains"],
  network: NetworkName | null,
): ReadableChain | undefined {
  const chain = network === null ? undefined : chains[network];
  if (chain === undefined) return undefined;
  return { ...chain, ask: askNode(chain.rpcUrl) };
}

/** An authorization, with the fields that identify it on chain. */
export type UsableAuthorization = {
  network: NetworkName;
  payment: KnownPayment;
  settlementId: Hex;
};

/** Queries a chain of an `up`. Undefined if it has no such chain (as with `mock` and `serve`), or the query fails. */
async function askChain<T>(
  origin: string,
  network: NetworkName,
  question: (chain: RunningNetwork) => Promise<T>,
): Promise<T | undefined> {
  try {
    const chain = (await askHarness(origin))?.networks[network];
    return chain && (await question(chain));
  } catch {
    // The nodes may run on another machine, or the address may not be a token.
    return undefined;
  }
}

/** How an authorization was used or canceled, by anyone, on a chain of an `up`; null if it is unused. */
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

/** The obstacles to a payment at the newest block of a chain of an `up`. */
export const askState = (origin: string, { network, payment }: Omit<UsableAuthorization, "settlementId">) =>
  askChain(origin, network, ({ rpcUrl }) => askPayerState(askNode(rpcUrl), payment, "latest"));

/** Enough for local chains, which answer from memory. */
const answersWithinMs = 5_000;

/** Returns the JSON at a URL; undefined if there is none. */
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
 * Returns the time by which an `up` or `mock` at a URL judges payments on a network, in unix seconds: the chain's or the
 * mock's. Undefined if it has no clock of its own, as with `serve`.
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

/** Returns the rules that a facilitator's `/supported` reports; fields that it does not report are undefined. */
export async function askPolicy(origin: string): Promise<Pick<Deployment, "payTo" | "strictness">> {
  const { kinds = [] } = supportedSchema.safeParse(await read(`${origin}/supported`)).data ?? {};
  const { payTo, strictness } = kinds.find(({ extra }) => extra !== undefined)?.extra ?? {};
  return { payTo, strictness };
}

/** Creates a reader of payment states on the local chains. */
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
