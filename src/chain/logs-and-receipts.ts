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
  /** By position: this topic, one of these, or any (null). */
  topics: readonly (Hex | readonly Hex[] | null)[];
  /** See `RpcCall`. */
  about?: Hex | undefined;
};

export type MinedLog = EventLog & LogPlace;

/**
 * Reads the logs that match one of the filters in a range of blocks, both ends included. Yields them in chunks of
 * blocks, lowest first.
 *
 * @throws UndeterminedError when they cannot all be read, or the node has not seen the last of these blocks yet.
 */
export type LogReader = (
  filters: readonly LogFilter[],
  fromBlock: bigint,
  toBlock: bigint,
) => AsyncGenerator<readonly MinedLog[], void>;

/** The initial number of blocks per request. Providers allow from 5 to 10,000, or as many as hold 10,000 logs. */
const mostBlocks = 2_000n;

/** The number of successful requests before a larger range is tried again. */
const answersBeforeMore = 16;

/**
 * Creates a log reader. Providers do not say how many blocks they accept, or only in an error message. So if a request
 * is refused, even by another endpoint (if there is one), its range is halved, down to a single block.
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

  /** Returns the logs of a range, or why it was refused. */
  async function readRange(filters: readonly LogFilter[], from: bigint, to: bigint) {
    const [fromBlock, toBlock] = [quantity(from), quantity(to)];
    const calls = filters.map(({ address, topics, about }) => ({
      method: "eth_getLogs",
      about,
      params: [{ address, topics, fromBlock, toBlock }],
    }));
    let refusal = "";
    // With two refusals, another endpoint is asked first.
    for (const refused of [0, 2]) {
      const [block, ...answers] = await rpc.ask([headCall, ...calls], refused);
      const error = answers.find((answer) => answer.error !== undefined)?.error;
      if (error !== undefined) {
        refusal = describeError(error);
        continue;
      }
      const head = expect("the newest block", block, readHead);
      // If asked for blocks it does not have, a node returns no logs and no error.
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

/** Returns true if a log matches the filter; some nodes return more than was requested. */
function fits({ address, topics }: EventLog, filter: LogFilter): boolean {
  if (!sameAddress(address, filter.address)) return false;
  return filter.topics.every((wanted, position) => {
    if (wanted === null) return true;
    const topic = topics[position]?.toLowerCase();
    return [wanted].flat().some((one) => one.toLowerCase() === topic);
  });
}

/** An event as emitted by a contract. `logIndex` counts all logs of the block. */
export type EventLog = { address: Address; topics: readonly Hex[]; data: Hex; logIndex: number };

/** The location of a log on the chain. */
export type LogPlace = { transactionHash: Hex; blockNumber: bigint; blockHash: Hex };

/** Parses a log; undefined if it is invalid. */
export function readLog(log: unknown): EventLog | undefined {
  const { address, topics, data, ...rest } = membersOf(log);
  const logIndex = Number(readQuantity(rest.logIndex) ?? Number.NaN);
  if (!isAddress(address) || !isBytes(data) || !Number.isSafeInteger(logIndex)) return undefined;
  if (!Array.isArray(topics) || !topics.every(isBytes32)) return undefined;
  return { address, topics, data, logIndex };
}

/** Parses the location of a log; undefined if it is missing, or the log was removed. */
export function readLogPlace(log: unknown): LogPlace | undefined {
  const { transactionHash, blockHash, removed, ...rest } = membersOf(log);
  if (removed === true) return undefined;
  const blockNumber = readQuantity(rest.blockNumber);
  if (!isBytes32(transactionHash) || !isBytes32(blockHash) || blockNumber === undefined) return undefined;
  return { transactionHash, blockNumber, blockHash };
}

/** A mined transaction, with the data that proves what it settled. */
export type Receipt = {
  hash: Hex;
  succeeded: boolean;
  blockNumber: bigint;
  blockHash: Hex;
  logs: readonly EventLog[];
  /** The fee paid by its sender, in wei; undefined if the node does not say. */
  gasCost: bigint | undefined;
};

/** A receipt with the label of the RPC endpoint that returned it. */
export type EndpointReceipt = Receipt & { readonly endpoint: string };

export type ReceiptReader = (
  hashes: readonly Hex[],
  options?: { attempt?: number },
) => Promise<readonly (EndpointReceipt | null)[]>;

/** How many endpoints are tried for an unusable receipt. */
const turns = 3;

/**
 * Creates a receipt reader, which tries other endpoints if a receipt is unreadable or untrue.
 *
 * A receipt of success proves itself by its logs. A reverted transaction has no logs: its receipt is believed if the
 * transaction itself is in the block that the receipt names. Nodes and caches that mix up receipts are rare, but a
 * payment that is called failed and made anyway is lost.
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
    // A receipt that no endpoint returns in a usable form counts as missing; the others stay usable.
    return hashes.map((hash) => receipts.get(hash) ?? null);
  };
}

/** Returns true if a node has the transaction of a receipt in the block that the receipt names. */
function isWhereSaid(transaction: unknown, { hash, blockHash, blockNumber }: Receipt): boolean {
  const said = membersOf(transaction);
  const same = (one: unknown, other: Hex) =>
    typeof one === "string" && one.toLowerCase() === other.toLowerCase();
  return (
    same(said.hash, hash) && same(said.blockHash, blockHash) && readQuantity(said.blockNumber) === blockNumber
  );
}

/**
 * Reads the receipts of transactions whose logs were found.
 *
 * @throws UndeterminedError when one is missing, or from another block than its log
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

/** The hash that some nodes return for a block that does not exist yet. */
const noBlockHash = /^0x0{64}$/;

/**
 * Parses the result of `eth_getTransactionReceipt`: null if there is no receipt (yet), undefined if it is not a
 * receipt of the requested transaction.
 */
export function readReceipt(answer: unknown, hash: Hex): Receipt | null | undefined {
  if (answer === null) return null;
  const fields = membersOf(answer);
  const { transactionHash, status, blockHash } = fields;
  if (!isBytes32(transactionHash) || transactionHash.toLowerCase() !== hash.toLowerCase()) return undefined;
  // Some nodes return receipts of pending transactions.
  if (fields.blockNumber === null || blockHash === null) return null;
  const blockNumber = readQuantity(fields.blockNumber);
  const logs = readLogs(fields.logs, hash);
  if (blockNumber === undefined || logs === undefined || !isBytes32(blockHash)) return undefined;
  if (status !== "0x1" && status !== "0x0") return undefined;
  if (noBlockHash.test(blockHash)) return null;
  return { hash, succeeded: status === "0x1", blockNumber, blockHash, logs, gasCost: readGasCost(fields) };
}

/** The fee for the gas, plus the data fee of base and optimism. */
function readGasCost(fields: ReturnType<typeof membersOf>): bigint | undefined {
  const gasUsed = readQuantity(fields.gasUsed);
  const price = readQuantity(fields.effectiveGasPrice);
  if (gasUsed === undefined || price === undefined) return undefined;
  return gasUsed * price + (readQuantity(fields.l1Fee) ?? 0n);
}

/**
 * Returns undefined if a log is invalid or names another transaction. Otherwise such logs could prove the payments of
 * another attempt with the same txNonce, and this one would be named as the one that paid.
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
