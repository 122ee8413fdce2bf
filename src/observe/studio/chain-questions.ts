import { createChainReader } from "../../chain/chain-reader.ts";
import { createLogReader, type Receipt, readReceipt } from "../../chain/logs-and-receipts.ts";
import type { RpcAnswer, RpcReader } from "../../chain/rpc/rpc.ts";
import {
  namedChannelEvent,
  readChannelEvent,
} from "../../methods/batch-settlement/on-chain/channel-events.ts";
import { readReceiver } from "../../methods/batch-settlement/on-chain/channel-state.ts";
import { decodeEvents, type PaymentEvent } from "../../methods/on-chain/events.ts";
import { findUse, type KnownPayment } from "../../methods/on-chain/nonces.ts";
import { paymentIn } from "../../methods/on-chain/payer-state.ts";
import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import { type Address, type Hex, isAddress, isBytes, isBytes32, readQuantity } from "../../protocol/hex.ts";
import type { Asset, Network } from "../../protocol/networks.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import { KitError, UndeterminedError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import { withTimeout } from "../../util/waiting.ts";
import type { TransactionView } from "../timeline/payment-view.ts";
import type { PaymentRecord } from "../timeline/record.ts";
import { summaryOf } from "../timeline/summary.ts";
import type { PaymentChain } from "./payment-detail.ts";

/** A chain that is read for people who look at a payment; never used to send transactions. */
export type ReadableChain = {
  network: Pick<Network, "name" | "chainId">;
  facilitatorContract: Address;
  asset: Asset;
  /** Makes one call. Returns the node's result or error; throws if the node does not answer. */
  ask(method: string, ...params: readonly unknown[]): Promise<RpcAnswer>;
};

/** Limits of one search: a person waits for it, and each request to a provider costs money. */
const bounds = { requests: 40, blocks: 32_000n, timeoutMs: 3_000 };

/** The chain on which to look for a payment's use. */
type UseChain = Pick<ReadableChain, "network" | "facilitatorContract" | "ask"> & {
  asset: Pick<Asset, "address">;
};

/**
 * Finds out how a payment was used or cancelled, by anyone, in the newest blocks; see {@link findUse}.
 *
 * @returns undefined if it is unused, or was used in older blocks
 * @throws {UndeterminedError} if the chain does not say
 */
export async function findPaymentUse(
  chain: UseChain,
  { payment, settlementId: about }: { payment: KnownPayment; settlementId: Hex },
): Promise<PaymentUse | undefined> {
  const rpc = boundedRpc(chain);
  const reader = createChainReader(rpc, chain.network.name);
  const readLogs = createLogReader({ rpc, reader });
  const { facilitatorContract, asset } = chain;
  return findUse({ rpc, reader, readLogs, facilitatorContract }, paymentIn(payment, asset), {
    about,
    blocks: bounds.blocks,
  });
}

/** The sum claimed for a receiver and not yet paid out, in the token's smallest unit; undefined if the chain does not say. */
export async function readOwed(
  chain: Pick<ReadableChain, "network" | "ask">,
  receiver: Address,
  token: Address,
): Promise<bigint | undefined> {
  const reader = createChainReader(boundedRpc(chain), chain.network.name);
  try {
    const { claimed, settled } = await readReceiver({ reader }, receiver, token);
    return claimed - settled;
  } catch (error) {
    if (error instanceof UndeterminedError) return undefined;
    throw error;
  }
}

/** The number of searches that may run at a time. */
const mostSearches = 2;

/** A search that found nothing is not repeated within this time. */
const believeEmptyMs = 15_000;

/**
 * {@link findPaymentUse} with a cache, for clients that poll. A result is kept as long as its payment, at most two
 * searches run at a time, and a search that fails or takes too long returns undefined.
 */
export function createUseFinder(
  chainOf: (request: PaymentRequest) => UseChain | undefined,
  { timeoutMs }: { timeoutMs: number } = bounds,
): PaymentChain["authorizationUse"] {
  type Known = { search: Promise<PaymentUse | undefined>; isFinal: boolean; at: number };
  const answers = new WeakMap<PaymentRecord, Known>();
  let searching = 0;

  function search(request: PaymentRequest, record: PaymentRecord): Known {
    const chain = chainOf(request);
    const known: Known = { search: Promise.resolve(undefined), isFinal: false, at: performance.now() };
    if (chain === undefined || searching >= mostSearches) return known;
    searching++;
    known.search = findPaymentUse(chain, request)
      .catch(() => undefined)
      .finally(() => searching--)
      .then((use) => {
        known.isFinal = use !== undefined;
        return use;
      });
    answers.set(record, known);
    return known;
  }

  return async (record) => {
    const { request } = record;
    if (request === undefined) return undefined;
    const known = answers.get(record);
    const isFresh = known !== undefined && (known.isFinal || performance.now() - known.at < believeEmptyMs);
    const { search: found } = isFresh ? known : search(request, record);
    return withTimeout(found, timeoutMs).catch(() => undefined);
  };
}

/** An RPC reader that rejects after too many requests or too much time. */
function boundedRpc({ network, ask }: Pick<ReadableChain, "network" | "ask">): RpcReader {
  let requests = 0;
  const until = performance.now() + bounds.timeoutMs;
  return {
    ask(calls) {
      requests += calls.length;
      if (requests > bounds.requests || performance.now() > until) {
        return Promise.reject(new UndeterminedError(`The search on ${network.name} takes too long`));
      }
      return Promise.all(
        calls.map(async ({ method, params }) => ({
          ...(await ask(method, ...params)),
          endpoint: network.name,
        })),
      );
    },
  };
}

/**
 * Reads a payment's newest transaction from a node and decodes it: the call with its payments, without signatures,
 * and the events.
 *
 * @throws {KitError} if the payment has no transaction, or the node does not know it
 */
export async function transactionOf(
  record: PaymentRecord,
  chain: Pick<ReadableChain, "network" | "ask"> | undefined,
): Promise<TransactionView> {
  const { transaction: hash } = summaryOf(record);
  if (!isBytes32(hash) || chain === undefined)
    throw new KitError("This payment has no transaction: nothing was sent for it");
  const [{ result: sent }, { result: answer }] = await Promise.all([
    chain.ask("eth_getTransactionByHash", hash),
    chain.ask("eth_getTransactionReceipt", hash),
  ]);
  const { input, from, to, gas } = membersOf(sent);
  if (!isBytes(input)) {
    throw new KitError(`The node of ${chain.network.name} does not know transaction ${hash}`);
  }
  // This imports viem, which takes longer than all other work of a command that needs no transaction.
  const { decodeCall } = await import("../../methods/on-chain/decode-call.ts");
  const receipt = readReceipt(answer, hash);
  const { gasUsed, effectiveGasPrice } = membersOf(answer);
  const mined = receipt && {
    succeeded: receipt.succeeded,
    blockNumber: `${receipt.blockNumber}`,
    blockHash: receipt.blockHash,
    gasUsed: decimal(gasUsed),
    gasPrice: decimal(effectiveGasPrice),
    fee: receipt.gasCost === undefined ? null : `${receipt.gasCost}`,
    events: eventsOf(receipt),
  };
  return {
    hash,
    from: textOr(from),
    to: textOr(to),
    gasLimit: decimal(gas),
    call: isAddress(to) ? decodeCall(to, input) : null,
    mined: mined ?? null,
  };
}

/** The events of payments and channels, in log order. */
function eventsOf(receipt: Receipt) {
  const ofPayments = decodeEvents(receipt).map(viewOf);
  const logs = receipt.succeeded ? receipt.logs : [];
  const ofChannels = logs.flatMap((log) => {
    const event = readChannelEvent(log);
    const { address: emitter, logIndex } = log;
    return event ? [{ name: event.name, emitter, logIndex, fields: namedChannelEvent(event) }] : [];
  });
  return [...ofPayments, ...ofChannels].sort((one, other) => one.logIndex - other.logIndex);
}

function viewOf({ name, emitter, logIndex, ...fields }: PaymentEvent) {
  const values = Object.entries(fields).map(([key, value]) => [key, `${value}`]);
  return { name, emitter, logIndex, fields: Object.fromEntries(values) };
}

function decimal(value: unknown): string | null {
  const read = readQuantity(value);
  return read === undefined ? null : `${read}`;
}

const textOr = (value: unknown) => (typeof value === "string" ? value : null);
