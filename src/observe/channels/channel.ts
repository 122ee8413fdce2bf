import { channel as nodeChannel } from "node:diagnostics_channel";
import { showValue } from "../../util/show-value.ts";

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
   * warning of the process; see {@link warnOfObserver}.
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
        warnOfObserver(`No message could be made for ${fullName}`, error);
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
          warnOfObserver(`A listener of ${fullName} failed`, error);
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

const warnedAt = new Map<string, number>();

/**
 * Warns, with the stack, that something failed which only looks on at payments: nothing that is decided about them depends
 * on it, so all else goes on. Tests fail for it, in `test/support/observers-setup.ts`.
 *
 * @param what the same text for the same observer; it is a warning at most once a minute
 */
export function warnOfObserver(what: string, error: unknown): void {
  const now = performance.now();
  const before = warnedAt.get(what);
  if (before !== undefined && now - before < quietMs) return;
  warnedAt.set(what, now);
  const detail = error instanceof Error ? (error.stack ?? error.message) : showValue(error);
  process.emitWarning(`${what}; payments are not affected by it. Please report it.`, {
    code: observerFailed,
    detail,
  });
}
