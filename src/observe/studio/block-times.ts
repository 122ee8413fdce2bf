import { publicationTime } from "../channels/channel.ts";
import { channels, type PaymentOutcome } from "../channels/channels.ts";

/** What the newest block of a network was to a service, and when. Chains may have another time than this machine. */
export type BlockTimes = {
  /** The number of the newest block at a time in unix milliseconds; undefined where none had been seen, or it is forgotten. */
  headAt(network: string, at: number): bigint | undefined;
  /** The chain's time, unix seconds, at a time in unix milliseconds; undefined where it is not known, or forgotten. */
  timeAt(network: string, at: number): bigint | undefined;
  /** Forgets all, as chains that begin anew. */
  clear(): void;
  close(): void;
};

/** The newest block of a network at a time. */
type SeenBlock = { at: number; timestamp: bigint; number: bigint | undefined };

/** For each network: some hours of blocks of one second. */
const mostBlocks = 10_000;

/** Of a request that took longer, the chain's time at its end says nothing of its beginning. */
const longestLookMs = 1_000;

/** How requests end for which the service has looked at their chain. */
const judgedByChain: readonly PaymentOutcome[] = ["valid", "settled", "pending"];

/**
 * Remembers the blocks that the service with this id sees.
 *
 * @param readTime asks a chain for its time, unix seconds: the service itself looks at no chain for a payment that it
 * refuses for its signature or terms
 */
export function createBlockTimes(
  serviceId: string,
  readTime: (network: string) => Promise<bigint | undefined> | undefined,
): BlockTimes {
  const seen = new Map<string, SeenBlock[]>();
  /** Networks that are asked just now: what ends meanwhile was asked for at the same time. */
  const asked = new Set<string>();
  let era = 0;

  function remember(network: string, block: SeenBlock): void {
    const blocks = seen.get(network) ?? [];
    seen.set(network, blocks);
    const before = blocks.findLastIndex(({ at }) => at <= block.at);
    if (block.number === undefined && blocks[before]?.timestamp === block.timestamp) return;
    blocks.splice(before + 1, 0, block);
    if (blocks.length > mostBlocks) blocks.splice(0, mostBlocks / 10);
  }

  async function lookFor(network: string, at: number): Promise<void> {
    if (asked.has(network)) return;
    asked.add(network);
    const before = era;
    try {
      const timestamp = await readTime(network);
      if (timestamp !== undefined && before === era) remember(network, { at, timestamp, number: undefined });
    } catch {
      // A chain that does not answer may have ended; its payments are told without its time.
    } finally {
      asked.delete(network);
    }
  }

  const unsubscribeBlocks = channels.block.subscribe((message) => {
    if (message.serviceId !== serviceId) return;
    const { network, number, timestamp } = message;
    remember(network, { at: publicationTime(), timestamp, number });
  });
  const unsubscribePayments = channels.payment.subscribe((message) => {
    if (message.serviceId !== serviceId || message.payment === undefined) return;
    const { payment, result, tookMs } = message;
    if (judgedByChain.includes(result.outcome) || tookMs > longestLookMs) return;
    void lookFor(payment.knownNetwork.name, publicationTime() - tookMs);
  });

  // What happened within that millisecond counts.
  const isBy = (time: number) => (block: SeenBlock) => block.at < Math.floor(time) + 1;

  return {
    headAt: (network, time) =>
      seen.get(network)?.findLast((block) => block.number !== undefined && isBy(time)(block))?.number,
    timeAt: (network, time) => seen.get(network)?.findLast(isBy(time))?.timestamp,
    clear: () => {
      era++;
      seen.clear();
    },
    close: () => {
      unsubscribeBlocks();
      unsubscribePayments();
    },
  };
}
