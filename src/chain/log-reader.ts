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
import { describeError, type Rpc, type RpcAnswer } from "./rpc/rpc.ts";

/** Which logs are asked for. */
export type LogFilter = {
  address: Address;
  /** By position: this topic, one of these, or any. */
  topics: readonly (Hex | readonly Hex[] | null)[];
  /** As in `RpcCall`. */
  about?: Hex | undefined;
};

/** A log of a block. */
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
export function createLogReader({ rpc, reader }: { rpc: Pick<Rpc, "ask">; reader: ChainReader }): LogReader {
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
      ...{ method: "eth_getLogs", about },
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
