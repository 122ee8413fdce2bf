import { sleep } from "../relayer/poll.ts";

/** One request of this process that settles a payment, until it has an answer. */
export type FirstRequest = { end(): void };

/** Requests of this process for payments that another of its requests is settling already. */
export type Repeats = {
  /**
   * Makes a request the first one of a payment; `key` names the payment and its organization. If there is a first one
   * already, waits up to `waitMs` for its end: undefined when it has not ended by then, when the signal aborts, or when
   * too many requests wait already. Asks neither the ledger nor the chain.
   */
  begin(key: string, waitMs: number, signal: AbortSignal): Promise<FirstRequest | undefined>;
};

/** Repeats of one payment that wait at a time: a buyer sends few, and a flood must not take the places of others. */
const mostWaiting = 32;

export function createRepeats(now: () => number): Repeats {
  const running = new Map<string, { ended?: AbortController; waiting: number }>();
  return {
    async begin(key, waitMs, signal) {
      const until = now() + waitMs;
      for (let first = running.get(key); first !== undefined; first = running.get(key)) {
        if (first.waiting >= mostWaiting || now() >= until || signal.aborted) return undefined;
        first.waiting++;
        // Made for the few payments that are repeated: it takes more than all the rest here.
        first.ended ??= new AbortController();
        await sleep(until - now(), AbortSignal.any([first.ended.signal, signal]));
        first.waiting--;
      }
      const own: { ended?: AbortController; waiting: number } = { waiting: 0 };
      running.set(key, own);
      return {
        end() {
          if (running.get(key) === own) running.delete(key);
          own.ended?.abort();
        },
      };
    },
  };
}
