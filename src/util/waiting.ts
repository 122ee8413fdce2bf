import type { Logger } from "pino";

/** The result of `work`, or a rejection with the error of `late` after `ms` milliseconds. The work itself is not canceled. */
export async function withTimeout<T>(
  work: Promise<T>,
  ms: number,
  late: () => Error = () => new Error(`no answer within ${ms} ms`),
): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(late()), ms);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Does work with a signal that aborts with the given one, or with the shared one. */
export type WithEitherSignal = <T>(own: AbortSignal, work: (either: AbortSignal) => Promise<T>) => Promise<T>;

/**
 * Makes a {@link WithEitherSignal}. `AbortSignal.any` takes ten times the CPU per call, since it must also work for
 * signals that nobody reports as no longer needed.
 */
export function withEitherSignal(shared: AbortSignal): WithEitherSignal {
  const underWay = new Set<AbortController>();
  shared.addEventListener("abort", () => {
    for (const controller of underWay) controller.abort();
  });
  return async (own, work) => {
    const controller = new AbortController();
    const abort = () => controller.abort();
    if (own.aborted || shared.aborted) abort();
    own.addEventListener("abort", abort);
    underWay.add(controller);
    try {
      return await work(controller.signal);
    } finally {
      underWay.delete(controller);
      own.removeEventListener("abort", abort);
    }
  };
}

export type ClosingOptions = {
  logger: Logger;
  /** The time limit in milliseconds. */
  timeoutMs: number;
  /** Ends the process, whatever is still in progress; with exit code 1 by default. */
  giveUp?: () => void;
};

/**
 * Closes a service, and ends the process if that takes too long: whoever stops a process expects it to end. Interrupted
 * work is in the database, and is continued by the next start.
 */
export async function closeWithTimeout(
  service: { close(): Promise<void> },
  { logger, timeoutMs, giveUp = () => process.exit(1) }: ClosingOptions,
): Promise<void> {
  const timer = setTimeout(() => {
    logger.fatal(
      { seconds: timeoutMs / 1000 },
      "the service did not shut down in time; the process is ended",
    );
    giveUp();
  }, timeoutMs);
  try {
    await service.close();
  } finally {
    clearTimeout(timer);
  }
}

/** Limits work in this thread to a share of the CPU time. */
export type TimeBudget = {
  /** Does the work and returns its result; undefined, without doing it, while the budget is used up. */
  spend<T>(work: () => T): T | undefined;
};

/**
 * Makes a CPU time budget for work that must not delay the rest of the process. Time taken by other processes meanwhile
 * does not count: on a busy machine, one piece of work would use up the budget.
 *
 * @param share of all time that the work may take in the long run; 0.05 is a twentieth
 * @param mostMs that it may take at once; the last piece of work may exceed it, which is compensated by waiting
 * @param now the time in milliseconds since any moment, by which the budget grows
 * @param cpu the CPU time of this process in milliseconds, by which it is used up
 */
export function createTimeBudget({
  share,
  mostMs,
  now = () => performance.now(),
  cpu = cpuTimeMs,
}: {
  share: number;
  mostMs: number;
  now?: () => number;
  cpu?: () => number;
}): TimeBudget {
  let leftMs = mostMs;
  let countedAt = now();
  return {
    spend(work) {
      const start = now();
      leftMs = Math.min(mostMs, leftMs + (start - countedAt) * share);
      countedAt = start;
      if (leftMs <= 0) return undefined;
      const before = cpu();
      try {
        return work();
      } finally {
        leftMs -= cpu() - before;
      }
    },
  };
}

function cpuTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** How often to check, until when, and what ends it early. */
export type PollOptions = {
  /** Milliseconds between two checks. */
  every: number | (() => number);
  /** Returns true if the time is over; called after each check that found nothing. Without it there is no time limit. */
  until?: () => boolean;
  signal?: AbortSignal;
};

/**
 * Calls `look` until it returns a result, and returns that; undefined if the time is over or the signal aborts first.
 * The first call is immediate, and an error ends the polling.
 */
export async function poll<T>(
  look: () => Promise<T | undefined>,
  { every, until = () => false, signal }: PollOptions,
): Promise<T | undefined> {
  for (;;) {
    const found = await look();
    if (found !== undefined || until() || signal?.aborted) return found;
    await sleep(typeof every === "number" ? every : every(), signal);
    if (signal?.aborted) return undefined;
  }
}

/** Resolves after `ms` milliseconds, or when the signal aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  if (signal?.aborted) return Promise.resolve();
  const wake = () => resolve();
  const timer = setTimeout(wake, ms);
  signal?.addEventListener("abort", wake);
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", wake);
  });
}

/** The pause between two tries, as a fraction of the age of the matter … */
const pausePart = 1 / 8;
/** … and its maximum, in milliseconds. */
const longestPauseMs = 6 * 60 * 60 * 1000;

/** Milliseconds until the next try, for something that has gone on for `ageMs`. */
export function growingPause(ageMs: number, shortestMs: number): number {
  return Math.ceil(Math.min(Math.max(ageMs * pausePart, shortestMs), longestPauseMs));
}
