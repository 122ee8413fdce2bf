// Imported, not global: a test that installs fake timers must not stop batches.
import { setImmediate } from "node:timers";

/** How items are batched. */
export type TogetherOptions<Item> = {
  /** The maximum number of items per call; a power of two. */
  most: number;
  /** True if a call may have any number of items: for work that puts all of them in one statement, see {@link padded}. */
  anyNumber?: boolean;
  /** Items with the same key never share a call: the later one waits for the next. Without it any items may. */
  keyOf?: (item: Item) => string;
  /** The maximum number of calls in progress; further items wait until one ends. 3 by default. */
  mostUnderWay?: number;
};

/** How long items wait for more, while every turn of the event loop brings some, in milliseconds. */
const longestWaitMs = 4;

type Waiting<Item, Result> = { item: Item; resolve(result: Result): void; reject(error: unknown): void };

/**
 * Turns a function for many items into one for a single item: items that arrive in one turn of the event loop, or while
 * enough calls are in progress, share a call. `work` returns the results in the order of the items; if it throws, all
 * of its items fail.
 *
 * A call has 1, 2, 4, 8 … items unless `anyNumber` is set, so that a database has few different statements to prepare.
 */
export function together<Item, Result>(
  work: (items: readonly Item[]) => Promise<readonly Result[]>,
  { most, keyOf, anyNumber = false, mostUnderWay = 3 }: TogetherOptions<Item>,
): (item: Item) => Promise<Result> {
  let waiting: Waiting<Item, Result>[] = [];
  let underWay = 0;
  let scheduled = false;

  function schedule(): void {
    if (scheduled || underWay >= mostUnderWay) return;
    scheduled = true;
    const until = performance.now() + longestWaitMs;
    let before = 0;
    const turn = () => {
      // A server accepts one new connection per turn: without the wait, each item would get its own call.
      const isGrowing = waiting.length > before && waiting.length < most;
      before = waiting.length;
      if (isGrowing && performance.now() < until) {
        setImmediate(turn);
        return;
      }
      scheduled = false;
      while (waiting.length > 0 && underWay < mostUnderWay) void doTogether(take());
    };
    setImmediate(turn);
  }

  function take(): Waiting<Item, Result>[] {
    if (waiting.length === 1) return waiting.splice(0);
    const keys = new Set<string>();
    const fitting: Waiting<Item, Result>[] = [];
    for (const one of waiting) {
      const key = keyOf?.(one.item);
      if (key !== undefined) {
        if (keys.has(key)) continue;
        keys.add(key);
      }
      if (fitting.push(one) === most) break;
    }
    const taken = anyNumber ? fitting : fitting.slice(0, 2 ** Math.floor(Math.log2(fitting.length)));
    const isTaken = new Set(taken);
    waiting = waiting.filter((one) => !isTaken.has(one));
    return taken;
  }

  async function doTogether(taken: readonly Waiting<Item, Result>[]): Promise<void> {
    underWay++;
    try {
      const results = await work(taken.map(({ item }) => item));
      if (results.length !== taken.length)
        throw new Error("a piece of work gave too few or too many results");
      for (const [index, { resolve }] of taken.entries()) resolve(results[index] as Result);
    } catch (error) {
      for (const { reject } of taken) reject(error);
    } finally {
      underWay--;
      if (waiting.length > 0) schedule();
    }
  }

  return (item) => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    waiting.push({ item, resolve, reject });
    schedule();
    return promise;
  };
}

/** A list with its last item repeated until its length is 1, 2, 4, 8 …; for a look-up in a list this makes no difference. */
export function padded<Item>(items: readonly Item[]): Item[] {
  const missing = 2 ** Math.ceil(Math.log2(items.length)) - items.length;
  return [...items, ...items.slice(-1).flatMap((last) => Array.from({ length: missing }, () => last))];
}

/** Does a piece of work once all earlier ones have ended, even if they failed. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

/** Makes a queue that runs pieces of work one after the other, in the order of the calls. */
export function createSerialQueue(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work);
    last = turn.catch(() => {});
    return turn;
  };
}

/** Does a piece of work for each item, `atOnce` at a time, and returns the results in the order of the items. */
export async function inParallel<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const waiting = [...items.entries()];
  let failure: { error: unknown } | undefined;
  const worker = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [index, item] = next;
      try {
        results[index] = await work(item);
      } catch (error) {
        // The others finish what they have begun, so that nothing is left running.
        waiting.length = 0;
        failure ??= { error };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
  if (failure !== undefined) throw failure.error;
  return results;
}

/** Tracks work in progress, so that it can be awaited before its resources are closed. */
type Pending = {
  /** The same function, with its calls tracked. */
  track<Args extends unknown[], Result>(
    work: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<Result>;
  /** Resolves when all calls that had begun by now have ended, even if they failed. */
  settled(): Promise<void>;
};

export function createPending(): Pending {
  const underWay = new Set<Promise<unknown>>();
  return {
    track:
      (work) =>
      (...args) => {
        const begun = work(...args);
        underWay.add(begun);
        const end = () => underWay.delete(begun);
        begun.then(end, end);
        return begun;
      },
    async settled() {
      await Promise.allSettled(underWay);
    },
  };
}
