import {
  type Address,
  type Hex,
  isAddress,
  isBytes,
  isBytes32,
  quantity,
  readQuantity,
  sameAddress,
} from "../protocol/hex.ts";
import { membersOf } from "../util/json.ts";
import type { ChainReader } from "./chain-reader.ts";
import { smaller } from "./fees.ts";
import { headCall, readHead } from "./rpc/calls.ts";
import { describeError, type RpcAnswer, type RpcCall, type RpcReader } from "./rpc/rpc.ts";

export type LogFilter = {
  address: Address;
  /** By position: this topic, one of these, or any. */
  topics: readonly (Hex | readonly Hex[] | null)[];
  /** As in `RpcCall`. */
  about?: Hex | undefined;
};

export type MinedLog = EventLog & LogPlace;

/**
 * Reads the logs that fit one of the filters, of the given blocks, both ends included: some of the blocks at a time,
 * lowest first.
 *
 * @throws UndeterminedError when they cannot all be read, or the node has not seen the last of these blocks yet.
 */
export type LogReader = (
  filters: readonly LogFilter[],
  fromBlock: bigint,
  toBlock: bigint,
) => AsyncGenerator<readonly MinedLog[], void>;

/** Blocks in one question at first. Providers allow from 5 to 10,000, or as many as hold 10,000 logs. */
const mostBlocks = 2_000n;

/** Questions that must be answered before a larger one is tried again. */
const answersBeforeMore = 16;

/**
 * A provider does not say how many blocks it takes, or says so in words. So a question that is refused, at another
 * endpoint too where there is one, is asked for half as many, down to a single block.
 */
export function createLogReader({ rpc, reader }: { rpc: RpcReader; reader: ChainReader }): LogReader {
  const { expect, undetermined } = reader;
  let span = mostBlocks;
  let answered = 0;

  function noteSize(refused: boolean): void {
    answered = refused ? 0 : answered + 1;
    if (refused) span = span / 2n;
    else if (answered % answersBeforeMore === 0) span = smaller(span * 2n, mostBlocks);
  }

  /** The logs of a range, or why it was refused. */
  async function readRange(filters: readonly LogFilter[], from: bigint, to: bigint) {
    const [fromBlock, toBlock] = [quantity(from), quantity(to)];
    const calls = filters.map(({ address, topics, about }) => ({
      method: "eth_getLogs",
      about,
      params: [{ address, topics, fromBlock, toBlock }],
    }));
    let refusal = "";
    // The third number of refusals is where another endpoint gets its turn.
    for (const refused of [0, 2]) {
      const [block, ...answers] = await rpc.ask([headCall, ...calls], refused);
      const error = answers.find((answer) => answer.error !== undefined)?.error;
      if (error !== undefined) {
        refusal = describeError(error);
        continue;
      }
      const head = expect("the newest block", block, readHead);
      // Asked for blocks that it does not have, a node gives no logs, and no error.
      if (head.number < to) throw undetermined(`it has not seen block ${to} yet`);
      return filters.flatMap((filter, index) => readLogs(filter, answers[index], from, to));
    }
    return refusal;
  }

  function readLogs(filter: LogFilter, answer: RpcAnswer | undefined, from: bigint, to: bigint): MinedLog[] {
    const entries = expect("logs", answer, (result) => (Array.isArray(result) ? result : undefined));
    return entries.map((entry: unknown) => {
      const log = readLog(entry);
      const place = readLogPlace(entry);
      if (log === undefined || place === undefined) throw undetermined("logs: one of them is malformed");
      const isAskedFor = fits(log, filter) && from <= place.blockNumber && place.blockNumber <= to;
      if (!isAskedFor) throw undetermined("logs: one of them was not asked for");
      return { ...log, ...place };
    });
  }

  return async function* read(filters, fromBlock, toBlock) {
    for (let from = fromBlock; from <= toBlock; ) {
      const to = smaller(from + span - 1n, toBlock);
      const logs = await readRange(filters, from, to);
      if (typeof logs === "string") {
        if (from === to) throw undetermined(`logs of block ${from}: ${logs}`);
        span = to - from + 1n;
      } else {
        yield logs;
        from = to + 1n;
      }
      noteSize(typeof logs === "string");
    }
  };
}

/** Some nodes give more than was asked for. */
function fits({ address, topics }: EventLog, filter: LogFilter): boolean {
  if (!sameAddress(address, filter.address)) return false;
  return filter.topics.every((wanted, position) => {
    if (wanted === null) return true;
    const topic = topics[position]?.toLowerCase();
    return [wanted].flat().some((one) => one.toLowerCase() === topic);
  });
}

/** An event as a contract emitted it. `logIndex` counts all logs of the block. */
export type EventLog = { address: Address; topics: readonly Hex[]; data: Hex; logIndex: number };

/** Where a log stands on the chain. */
export type LogPlace = { transactionHash: Hex; blockNumber: bigint; blockHash: Hex };

/** Reads a log; undefined when it is none. */
export function readLog(log: unknown): EventLog | undefined {
  const { address, topics, data, ...rest } = membersOf(log);
  const logIndex = Number(readQuantity(rest.logIndex) ?? Number.NaN);
  if (!isAddress(address) || !isBytes(data) || !Number.isSafeInteger(logIndex)) return undefined;
  if (!Array.isArray(topics) || !topics.every(isBytes32)) return undefined;
  return { address, topics, data, logIndex };
}

/** Reads where a log stands; undefined when it does not say, or that it stands nowhere any more. */
export function readLogPlace(log: unknown): LogPlace | undefined {
  const { transactionHash, blockHash, removed, ...rest } = membersOf(log);
  if (removed === true) return undefined;
  const blockNumber = readQuantity(rest.blockNumber);
  if (!isBytes32(transactionHash) || !isBytes32(blockHash) || blockNumber === undefined) return undefined;
  return { transactionHash, blockNumber, blockHash };
}

/** A mined transaction, with what is needed to prove that it settled something. */
export type Receipt = {
  hash: Hex;
  succeeded: boolean;
  blockNumber: bigint;
  blockHash: Hex;
  logs: readonly EventLog[];
  /** The fee paid by its sender, in wei; undefined where the node does not say. */
  gasCost: bigint | undefined;
};

/** The same, with the label of the RPC endpoint that gave it, its source. */
export type EndpointReceipt = Receipt & { readonly endpoint: string };

export type ReceiptReader = (
  hashes: readonly Hex[],
  options?: { attempt?: number },
) => Promise<readonly (EndpointReceipt | null)[]>;

/** How many endpoints are asked for a receipt that is of no use. */
const turns = 3;

/**
 * Reads receipts, from other endpoints where one gives what cannot be read, or what is not true.
 *
 * A receipt of success proves itself by its logs. One of a reverted transaction
 * has none: it is believed when the transaction itself is in the block that the receipt names. Nodes and
 * caches that mix receipts up are rare; a payment that is called failed, and is made all the same, is lost.
 */
export function createReceiptReader({ ask }: Pick<ChainReader, "ask">): ReceiptReader {
  async function findReverted(reverted: readonly Receipt[], attempt: number): Promise<ReadonlySet<Hex>> {
    if (reverted.length === 0) return new Set();
    const calls = reverted.map(({ hash }) => transactionCall(hash));
    const answers = await ask(calls, { attempt });
    const found = reverted.filter((receipt, index) => isWhereSaid(answers[index]?.result, receipt));
    return new Set(found.map(({ hash }) => hash));
  }

  return async (hashes, { attempt: before = 0 } = {}) => {
    const receipts = new Map<Hex, EndpointReceipt | null>();
    let left = hashes;
    for (let turn = 0; left.length > 0 && turn < turns; turn++) {
      const attempt = before + turn;
      const calls = left.map(receiptCall);
      const answers = await ask(calls, { attempt });
      const read = left.map((hash, index) => {
        const { result, endpoint = "" } = answers[index] ?? {};
        const receipt = readReceipt(result, hash);
        return receipt && { ...receipt, endpoint };
      });
      const reverted = await findReverted(
        read.flatMap((receipt) => (receipt == null || receipt.succeeded ? [] : receipt)),
        attempt,
      );
      for (const [index, hash] of left.entries()) {
        const receipt = read[index];
        if (receipt === null || receipt?.succeeded === true || reverted.has(hash)) {
          receipts.set(hash, receipt ?? null);
        }
      }
      left = left.filter((hash) => !receipts.has(hash));
    }
    // A receipt that no endpoint gives in a useful form is not known yet; the others are all the same.
    return hashes.map((hash) => receipts.get(hash) ?? null);
  };
}

/** Returns true if a node has the transaction of a receipt in the block of the receipt. */
function isWhereSaid(transaction: unknown, { hash, blockHash, blockNumber }: Receipt): boolean {
  const said = membersOf(transaction);
  const same = (one: unknown, other: Hex) =>
    typeof one === "string" && one.toLowerCase() === other.toLowerCase();
  return (
    same(said.hash, hash) && same(said.blockHash, blockHash) && readQuantity(said.blockNumber) === blockNumber
  );
}

/**
 * Reads the receipts of transactions that a log was found in.
 *
 * @throws UndeterminedError where there is none, or one of another block than the log's
 */
export async function readReceiptsAt(
  reader: ChainReader,
  places: readonly LogPlace[],
): Promise<readonly Receipt[]> {
  if (places.length === 0) return [];
  const answers = await reader.ask(places.map(({ transactionHash }) => receiptCall(transactionHash)));
  return places.map(({ transactionHash, blockHash }, index) => {
    const receipt = reader.expect(
      "the receipt of a log",
      answers[index],
      (result) => readReceipt(result, transactionHash) ?? undefined,
    );
    if (receipt.blockHash.toLowerCase() !== blockHash.toLowerCase()) {
      throw reader.undetermined("a log and its receipt are of different blocks");
    }
    return receipt;
  });
}

function receiptCall(hash: Hex): RpcCall {
  return { method: "eth_getTransactionReceipt", params: [hash], about: hash };
}

export function transactionCall(hash: Hex): RpcCall {
  return { method: "eth_getTransactionByHash", params: [hash], about: hash };
}

/** The hash that some nodes give for a block that does not exist yet. */
const noBlockHash = /^0x0{64}$/;

/**
 * Reads the answer to `eth_getTransactionReceipt`: null when there is no receipt (yet), undefined when the answer
 * is not a receipt of the transaction that was asked for.
 */
export function readReceipt(answer: unknown, hash: Hex): Receipt | null | undefined {
  if (answer === null) return null;
  const fields = membersOf(answer);
  const { transactionHash, status, blockHash } = fields;
  if (!isBytes32(transactionHash) || transactionHash.toLowerCase() !== hash.toLowerCase()) return undefined;
  // Some nodes give receipts of transactions that are still pending.
  if (fields.blockNumber === null || blockHash === null) return null;
  const blockNumber = readQuantity(fields.blockNumber);
  const logs = readLogs(fields.logs, hash);
  if (blockNumber === undefined || logs === undefined || !isBytes32(blockHash)) return undefined;
  if (status !== "0x1" && status !== "0x0") return undefined;
  if (noBlockHash.test(blockHash)) return null;
  return { hash, succeeded: status === "0x1", blockNumber, blockHash, logs, gasCost: readGasCost(fields) };
}

/** The gas, plus what base and optimism charge for the data. */
function readGasCost(fields: ReturnType<typeof membersOf>): bigint | undefined {
  const gasUsed = readQuantity(fields.gasUsed);
  const price = readQuantity(fields.effectiveGasPrice);
  if (gasUsed === undefined || price === undefined) return undefined;
  return gasUsed * price + (readQuantity(fields.l1Fee) ?? 0n);
}

/**
 * Undefined as well where a log names another transaction: its logs would prove the payments of another attempt of the same txNonce,
 * and this one would be named as the one that paid.
 */
function readLogs(logs: unknown, hash: Hex): EventLog[] | undefined {
  if (!Array.isArray(logs)) return undefined;
  const read = logs.map((log) => {
    const { transactionHash = hash } = membersOf(log);
    return String(transactionHash).toLowerCase() === hash.toLowerCase() ? readLog(log) : undefined;
  });
  const known = read.filter((log) => log !== undefined);
  return known.length === logs.length ? known : undefined;
}
