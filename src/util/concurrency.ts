// Imported, not global: a test that installs fake timers must not stop what works together.
import { setImmediate } from "node:timers";

/** How much is done together. */
export type TogetherOptions<Item> = {
  /** Items in one piece of work; a power of two. */
  most: number;
  /** Pieces have any number of items: for work that makes one statement of all, see {@link padded}. */
  anyNumber?: boolean;
  /** Items of the same key never share a piece of work: the later one waits for the next. Without it they do. */
  keyOf?: (item: Item) => string;
  /** Pieces of work under way at a time; what is asked for meanwhile waits for the end of one. 3 by default. */
  mostUnderWay?: number;
};

/** For how long what is asked for waits for more, while every turn of the event loop brings some, in milliseconds. */
const longestWaitMs = 4;

type Waiting<Item, Result> = { item: Item; resolve(result: Result): void; reject(error: unknown): void };

/**
 * Turns a function for many items into one for a single item: items of one turn of the event loop, or that arrive while
 * enough calls are under way, share a call. `work` returns the results in the order of the items; if it throws, all of
 * its items fail.
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
      // A server takes one new connection a turn: without the wait each would have a piece of work to itself.
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

/** A list with its last item repeated until there are 1, 2, 4, 8 …: for what is looked up in a list, that is the same. */
export function padded<Item>(items: readonly Item[]): Item[] {
  const missing = 2 ** Math.ceil(Math.log2(items.length)) - items.length;
  return [...items, ...items.slice(-1).flatMap((last) => Array.from({ length: missing }, () => last))];
}

/** Does a piece of work when all that was asked for before is over, whatever became of that. */
export type InTurn = <T>(work: () => Promise<T>) => Promise<T>;

/** Makes pieces of work wait for one another, in the order of the calls. */
export function createSerialQueue(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const turn = last.then(work);
    last = turn.catch(() => {});
    return turn;
  };
}

/** Does a piece of work for each item, some at a time, and gives the results in the order of the items. */
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

/** Knows what is under way, so that it can be waited for before what it needs is taken away. */
type Pending = {
  /** The same work, known while it is under way. */
  track<Args extends unknown[], Result>(
    work: (...args: Args) => Promise<Result>,
  ): (...args: Args) => Promise<Result>;
  /** Resolves when nothing is under way that had begun by now, whatever came of it. */
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
