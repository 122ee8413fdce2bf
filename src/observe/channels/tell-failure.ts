import { showValue } from "../../util/show-value.ts";

/** The `code` of the warnings of the process that say that an observer failed. */
export const observerFailed = "X402_OBSERVER_FAILED";

/** Between two warnings of the same text: what fails for one payment may fail for all. */
const quietMs = 60_000;

const toldAt = new Map<string, number>();

/**
 * Tells, as a warning of the process with the stack, that something failed which only looks on at payments: nothing that
 * is decided about them depends on it, so all else goes on. Tests fail for it, in `test/support/observers-setup.ts`.
 *
 * @param what the same text for the same observer; told at most once a minute
 */
export function tellFailure(what: string, error: unknown): void {
  const now = performance.now();
  const before = toldAt.get(what);
  if (before !== undefined && now - before < quietMs) return;
  toldAt.set(what, now);
  const detail = error instanceof Error ? (error.stack ?? error.message) : showValue(error);
  process.emitWarning(`${what}; payments are not affected by it. Please report it.`, {
    code: observerFailed,
    detail,
  });
}
