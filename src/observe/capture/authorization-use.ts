import { createChainReader } from "../../chain/chain-reader.ts";
import { createLogReader, type MinedLog } from "../../chain/log-reader.ts";
import { readReceiptsAt } from "../../chain/receipt-reader.ts";
import { headCall, readHead } from "../../chain/rpc/calls.ts";
import { quantity } from "../../chain/rpc/read-hex.ts";
import type { Rpc } from "../../chain/rpc/rpc.ts";
import {
  authorizationCanceledTopic,
  authorizationUsedTopic,
  decodeEvents,
} from "../../methods/exact-eip3009/on-chain/events.ts";
import type { Hex } from "../../protocol/hex.ts";
import { addressWord, sameAddress } from "../../protocol/hex.ts";
import type { PaymentRequest } from "../../protocol/requests.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { membersOf } from "../../util/json.ts";
import { withTimeout } from "../../util/with-timeout.ts";
import type { AuthorizationUse, PaymentChain } from "../studio/payment-chain.ts";
import type { LoggedPayment } from "../studio/payment-log.ts";
import type { ReadableChain } from "./readable-chain.ts";

/** Limits of one search: a person waits for it, and each request to a provider costs money. */
const bounds = { requests: 40, blocks: 32_000n, timeoutMs: 3_000 };

/** Blocks per request, newest first: most authorizations were used recently. */
const blocksAtOnce = 2_000n;

/**
 * Searches the newest blocks for the transaction that used or cancelled the authorization of a payment, from any
 * sender. For display only: a reorganization may change the result.
 *
 * @returns undefined when the authorization is unused, or was used in older blocks
 * @throws {UndeterminedError} when the chain does not say
 */
export async function findAuthorizationUse(
  chain: Pick<ReadableChain, "network" | "asset" | "ask">,
  {
    payment: { payer, nonce },
    settlementId: about,
  }: { payment: Pick<SignedPayment, "payer" | "nonce">; settlementId: Hex },
): Promise<AuthorizationUse | undefined> {
  const { asset, network } = chain;
  const rpc = boundedRpc(chain);
  const reader = createChainReader(rpc, network.name);
  const readLogs = createLogReader({ rpc, reader });

  const state = { to: asset.address, data: `0xe94a0102${addressWord(payer)}${nonce.slice(2)}` };
  const [used, newest] = await rpc.ask([{ method: "eth_call", params: [state, "latest"], about }, headCall]);
  const isUsed = reader.expect("authorizationState", used, (result) =>
    typeof result === "string" && result.length === 66 ? BigInt(result) !== 0n : undefined,
  );
  if (!isUsed) return undefined;
  const { number: head } = reader.expect("the newest block", newest, readHead);

  const filter = {
    ...{ address: asset.address, about },
    topics: [[authorizationUsedTopic, authorizationCanceledTopic], `0x${addressWord(payer)}` as const, nonce],
  };
  async function find(): Promise<MinedLog | undefined> {
    const oldest = head >= bounds.blocks ? head - bounds.blocks + 1n : 0n;
    for (let to = head; to >= oldest; to -= blocksAtOnce) {
      const from = to - oldest >= blocksAtOnce ? to - blocksAtOnce + 1n : oldest;
      for await (const [log] of readLogs([filter], from, to)) if (log !== undefined) return log;
    }
    return undefined;
  }
  const log = await find();
  if (log === undefined) return undefined;

  const { transactionHash: transaction, blockNumber, logIndex } = log;
  const [[receipt], [block, sent]] = await Promise.all([
    readReceiptsAt(reader, [log]),
    rpc.ask([
      { method: "eth_getBlockByNumber", params: [quantity(blockNumber), false] },
      { method: "eth_getTransactionByHash", params: [transaction] },
    ]),
  ]);
  const { timestamp } = reader.expect("a block", block, readHead);
  const { from: sender, to } = membersOf(sent?.result);
  const events = receipt === undefined ? [] : decodeEvents(receipt);
  const isUse = events.some((event) => event.logIndex === logIndex && event.name === "AuthorizationUsed");
  const transfer = events.find((event) => event.logIndex === logIndex + 1 && event.name === "Transfer");
  const isOfToken = transfer?.name === "Transfer" && sameAddress(transfer.emitter, asset.address);
  return {
    kind: isUse ? "used" : "cancelled",
    ...{ transaction, blockNumber, timestamp },
    sender: typeof sender === "string" ? sender : null,
    to: typeof to === "string" ? to : null,
    moved: isUse && isOfToken ? { to: transfer.to, value: transfer.value } : undefined,
  };
}

/** How many searches run at a time. */
const mostSearches = 2;

/** How long a search that found nothing is not repeated. */
const believeEmptyMs = 15_000;

/**
 * {@link findAuthorizationUse} with a cache, for readers that poll: a result is kept as long as its payment, at most
 * two searches run at a time, and a search that fails or takes too long gives undefined.
 */
export function createUseFinder(
  chainOf: (request: PaymentRequest) => Pick<ReadableChain, "network" | "asset" | "ask"> | undefined,
  { timeoutMs }: { timeoutMs: number } = bounds,
): PaymentChain["authorizationUse"] {
  type Known = { search: Promise<AuthorizationUse | undefined>; isFinal: boolean; at: number };
  /** By the summary, which lives as long as its payment; the request is made anew for each reader. */
  const answers = new WeakMap<LoggedPayment["summary"], Known>();
  let searching = 0;

  function search(request: PaymentRequest, summary: LoggedPayment["summary"]): Known {
    const chain = chainOf(request);
    const known: Known = { search: Promise.resolve(undefined), isFinal: false, at: performance.now() };
    if (chain === undefined || searching >= mostSearches) return known;
    searching++;
    known.search = findAuthorizationUse(chain, request)
      .catch(() => undefined)
      .finally(() => searching--)
      .then((use) => {
        known.isFinal = use !== undefined;
        return use;
      });
    answers.set(summary, known);
    return known;
  }

  return async ({ request, summary }) => {
    if (request === undefined) return undefined;
    const known = answers.get(summary);
    const isFresh = known !== undefined && (known.isFinal || performance.now() - known.at < believeEmptyMs);
    const { search: found } = isFresh ? known : search(request, summary);
    return withTimeout(found, timeoutMs).catch(() => undefined);
  };
}

/** A chain that throws after a number of requests. */
function boundedRpc({ network, ask }: Pick<ReadableChain, "network" | "ask">): Pick<Rpc, "ask"> {
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
