// Imported, not global: a test that installs fake timers must not stop its database.
import { setTimeout as delay } from "node:timers/promises";
import { UndeterminedError } from "../../util/errors.ts";

/** Nothing of the work has happened, for a reason that passes: it may be done again. */
export class UndoneError extends UndeterminedError {}

/** The connection was lost before the answer to a statement or a commit: it may have happened, or may not. */
export class UnansweredError extends UndeterminedError {}

/** For how long work is tried again, in milliseconds: a database server that restarts is back by then. */
const timeoutMs = 10_000;

/** The work is tried at least this often: a single try may take longer than the time limit. */
const fewestTries = 3;

/** The longest pause between two tries, in milliseconds. */
const longestPauseMs = 500;

/** Does the work again while it fails with an {@link UndoneError}, for ten seconds. */
export function untilDone<T>(work: () => Promise<T>): Promise<T> {
  return doAgain(work, (error) => error instanceof UndoneError);
}

/**
 * Does work again that may have happened already: a single statement that changes nothing when it comes a second time.
 * Without this, such a statement outside a transaction fails with its connection.
 *
 * @throws UnansweredError when it may have happened, whatever became of the last try.
 */
export function repeatable<T>(work: () => Promise<T>): Promise<T> {
  return doAgain(work, (error) => error instanceof UndoneError || error instanceof UnansweredError);
}

async function doAgain<T>(work: () => Promise<T>, passes: (error: unknown) => boolean): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let unanswered: UnansweredError | undefined;
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof UnansweredError) unanswered ??= error;
      if (!passes(error)) throw unanswered ?? error;
      if (tries >= fewestTries && performance.now() > deadline) throw unanswered ?? error;
      // Of random length: those that collided should not meet again.
      await delay(Math.random() * Math.min(5 * 2 ** tries, longestPauseMs));
    }
  }
}
