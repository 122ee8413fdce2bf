import { channel as nodeChannel } from "node:diagnostics_channel";
import { showValue } from "../../util/text.ts";

/** A named `node:diagnostics_channel` with one type of message. */
export type Channel<Message> = {
  readonly name: string;
  /**
   * Publishes to all subscribers, at once. `describe` is called only when there are any. Neither it nor a listener can
   * make this throw.
   */
  publish(describe: () => Message): void;
  /** Whether there are subscribers, for what would have to be collected before it is published. */
  isHeard(): boolean;
  /**
   * Calls the listener with every message, inside the call that publishes it: it must be quick. What it throws becomes a
   * warning of the process; see {@link tellFailure}.
   *
   * @returns what ends the subscription
   */
  subscribe(listener: (message: Message) => void): () => void;
};

/** The channel `x402-facilitator-kit:NAME`. Only the module that defines it publishes on it. */
export function defineChannel<Message>(name: string): Channel<Message> {
  const fullName = `x402-facilitator-kit:${name}`;
  const channel = nodeChannel(fullName);
  return {
    name: fullName,
    publish(describe) {
      if (!channel.hasSubscribers) return;
      try {
        channel.publish(describe());
      } catch (error) {
        tellFailure(`No message could be made for ${fullName}`, error);
      }
    },
    isHeard: () => channel.hasSubscribers,
    subscribe(listener) {
      const onMessage = (message: unknown) => {
        // Node would make it an uncaught exception, and who only looks on must not end a payment, or the process.
        try {
          // Published only above, where the type of the message is checked.
          listener(message as Message);
        } catch (error) {
          tellFailure(`A listener of ${fullName} failed`, error);
        }
      };
      channel.subscribe(onMessage);
      return () => channel.unsubscribe(onMessage);
    },
  };
}

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

/** What follows within one millisecond is this much later than what was before. */
const step = 1 / 1_024;

let last = 0;

/**
 * Unix milliseconds, each later than the ones given before: what several modules note of one payment can be put in its
 * order by time. Where the clock of the machine is set back by more than a second, it goes back too.
 */
export function publicationTime(): number {
  const now = Date.now();
  last = now > last || now < last - 1_000 ? now : last + step;
  return last;
}
