import { channels } from "../channels/channels.ts";
import { publicationTime } from "../channels/publication-time.ts";

/** Which block of a network was the newest to a service, and when. */
export type BlockTimes = {
  /** The number of the newest block at a time in unix milliseconds; undefined where none had been seen, or it is forgotten. */
  headAt(network: string, at: number): bigint | undefined;
  /** Forgets all, as chains that begin anew. */
  clear(): void;
  close(): void;
};

/** For each network: some hours of blocks of one second. */
const mostBlocks = 10_000;

/** Remembers the blocks that the service with this id sees. Chains may have another time than this machine. */
export function createBlockTimes(serviceId: string): BlockTimes {
  const seen = new Map<string, { number: bigint; at: number }[]>();
  const unsubscribe = channels.block.subscribe((message) => {
    if (message.serviceId !== serviceId) return;
    const { network, number } = message;
    const blocks = seen.get(network) ?? [];
    seen.set(network, blocks);
    blocks.push({ number, at: publicationTime() });
    if (blocks.length > mostBlocks) blocks.splice(0, mostBlocks / 10);
  });
  return {
    // What happened within that millisecond counts.
    headAt: (network, time) => seen.get(network)?.findLast(({ at }) => at < Math.floor(time) + 1)?.number,
    clear: () => seen.clear(),
    close: unsubscribe,
  };
}
