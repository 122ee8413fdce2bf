import type { Logger } from "pino";

/** The result of `work`, or a rejection after `ms` milliseconds, with what `late` gives. The work itself is not cancelled. */
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

/** Does work with a signal that aborts with the given one, or with the one that all work shares. */
export type WithEitherSignal = <T>(own: AbortSignal, work: (either: AbortSignal) => Promise<T>) => Promise<T>;

/**
 * Makes a {@link WithEitherSignal}. `AbortSignal.any` takes ten times the CPU for each piece of work, as it must also do
 * for signals of which no one says when they are needed no more.
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
  /** How long it may take, milliseconds. */
  timeoutMs: number;
  /** Ends the process, whatever is still under way; by default with exit code 1. */
  giveUp?: () => void;
};

/**
 * Closes a service, and ends the process when that takes too long: what stops a process counts on its end. Work that
 * is cut off then is in the database, and is taken up by the next start.
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

/** Lets work be done in this thread as long as it takes no more than its share of the CPU time. */
export type TimeBudget = {
  /** The result of the work; undefined, without doing it, while the budget is used up. */
  spend<T>(work: () => T): T | undefined;
};

/**
 * Makes a budget of CPU time for work that must not hold up what else the process does. What other processes take
 * while the work is under way does not count: on a busy machine, one piece would use up the budget.
 *
 * @param share of all time, that the work may take in the long run; 0.05 is a twentieth
 * @param mostMs that it may take at once; the last piece of work may go beyond, and is made up for by waiting
 * @param now the time in milliseconds since any moment, by which the budget grows
 * @param cpu the CPU time in milliseconds that this process has taken, by which it is used up
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

/** How often to look, until when, and what ends it early. */
export type PollOptions = {
  /** Milliseconds between two looks. */
  every: number | (() => number);
  /** Returns true if the time is over; asked after each look that found nothing. Without it there is no limit. */
  until?: () => boolean;
  signal?: AbortSignal;
};

/**
 * Looks again and again until there is something to see. Gives what the look gave; undefined when the time was over, or
 * the signal aborted, first. The first look is at once, and one that throws ends it.
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

/** Resolves after so many milliseconds, or when the signal aborts. */
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

/** The older something is, the longer are the pauses between two tries: this part of its age … */
const pausePart = 1 / 8;
/** … and at most so long, in milliseconds. */
const longestPauseMs = 6 * 60 * 60 * 1000;

/** Milliseconds until the next try, for something that has gone on for `ageMs`. */
export function growingPause(ageMs: number, shortestMs: number): number {
  return Math.ceil(Math.min(Math.max(ageMs * pausePart, shortestMs), longestPauseMs));
}
