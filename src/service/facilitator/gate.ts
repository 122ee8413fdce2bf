import type { RecentSettles } from "../../ledger/ledger.ts";
import { UndeterminedError } from "../../util/errors.ts";
import { sleep } from "../relayer/poll.ts";
import type { Waiting } from "./waiting.ts";

/**
 * Bounds how many settles of one kind are under way, by how those before them went. Each instance has gates of its own,
 * which all count in the ledger: only what instances let through at the same moment may exceed the bound, at most once for
 * each instance.
 */
export type Gate = {
  /**
   * Waits until there is room, and takes it.
   *
   * @throws UndeterminedError when there is none in time, or too many of the organization wait.
   */
  enter(waiting: Waiting): Promise<void>;
  /** Takes room if there is any. */
  tryToEnter(waiting: Waiting): Promise<boolean>;
  /** Gives it back, once the outcome of the settle is known or nobody waits for it any more. */
  leave(): void;
};

export type GateOptions = {
  /** How the settles went of the last {@link windowMs}. */
  read: () => Promise<RecentSettles>;
  /** How many may be under way while hardly any reverted. */
  most: (recent: RecentSettles) => number;
  /** Why a settle has to wait, for its caller. */
  why: string;
  /** Those of the organization that wait, at any gate. */
  waitingRoom: WaitingRoom;
  now: () => number;
  /** Nobody is in it, and nobody waits. */
  empty: () => void;
};

/** Places for payments that have to wait; `take` is false where there is none. */
export type WaitingRoom = { take(): boolean; giveBack(): void };

/** Reverts count for so long. A success does not end that. */
export const windowMs = 600_000;

/** Reverts that may be mishaps: a balance that went elsewhere, a wallet that was changed. */
const freeReverts = 3;
/** So many successes make up for one more. */
const successesPerRevert = 4;
const firstDelayMs = 1_000;
const longestDelayMs = 32_000;

/** Other instances let payments through and decide them too. */
const lookEveryMs = 250;

type Waiter = {
  waiting: Waiting;
  mayWait: boolean;
  hasPlace: boolean;
  end(result: boolean | Error): void;
};

export function createGate({ read, most, why, waitingRoom, now, empty }: GateOptions): Gate {
  const queue = new Set<Waiter>();
  let inside = 0;
  let isLooking = false;
  let pause: AbortController | undefined;

  /** How many more may enter now, and from when on one may. */
  function measure(recent: RecentSettles): { room: number; notBefore: number } {
    const taken = Math.max(recent.underWay, inside);
    const excess = recent.reverted - freeReverts - Math.floor(recent.settled / successesPerRevert);
    if (excess <= 0) return { room: most(recent) - taken, notBefore: 0 };
    const delayMs = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(excess - 1, 20));
    const notBefore = (recent.lastRevertedAt ?? 0) + delayMs;
    return { room: now() < notBefore ? 0 : 1 - taken, notBefore };
  }

  async function look(): Promise<void> {
    if (isLooking) return;
    isLooking = true;
    try {
      while (queue.size > 0) {
        const recent = await read();
        let { room, notBefore } = measure(recent);
        for (const waiter of queue) {
          if (room > 0) {
            room--;
            inside++;
            waiter.end(true);
          } else if (!waiter.mayWait) waiter.end(false);
          else if (notBefore >= waiter.waiting.deadline) waiter.end(late());
          else if (!waiter.hasPlace && !waitingRoom.take()) waiter.end(crowded());
          else waiter.hasPlace = true;
        }
        if (queue.size === 0) break;
        pause = new AbortController();
        await sleep(lookEveryMs, pause.signal);
      }
    } catch (error) {
      for (const waiter of queue) waiter.end(error instanceof Error ? error : new Error(String(error)));
    } finally {
      isLooking = false;
      clearAway();
    }
  }

  function clearAway(): void {
    if (inside === 0 && queue.size === 0 && !isLooking) empty();
  }

  async function join(waiting: Waiting, mayWait: boolean): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const waiter: Waiter = {
      waiting,
      mayWait,
      hasPlace: false,
      end(result) {
        queue.delete(waiter);
        if (waiter.hasPlace) waitingRoom.giveBack();
        clearTimeout(timer);
        waiting.signal.removeEventListener("abort", leaveQueue);
        if (result instanceof Error) reject(result);
        else resolve(result);
      },
    };
    const leaveQueue = () => {
      waiter.end(
        waiting.signal.aborted ? new UndeterminedError("The caller left; nothing was sent") : late(),
      );
      pause?.abort();
    };
    const timer = setTimeout(leaveQueue, Math.max(0, waiting.deadline - now()));
    waiting.signal.addEventListener("abort", leaveQueue);
    queue.add(waiter);
    if (waiting.signal.aborted) leaveQueue();
    void look();
    return promise;
  }

  const late = () =>
    new UndeterminedError(
      `${why}, so further ones are delayed, and this one would not be sent in time; nothing was sent, try again later`,
    );

  return {
    async enter(waiting) {
      await join(waiting, true);
    },
    tryToEnter: (waiting) => join(waiting, false),
    leave() {
      inside--;
      pause?.abort();
      clearAway();
    },
  };
}

function crowded(): UndeterminedError {
  return new UndeterminedError(
    "Too many payments to this organization wait for others that have to be decided first; nothing was sent, try again",
  );
}
