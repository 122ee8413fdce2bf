import { channel as nodeChannel } from "node:diagnostics_channel";
import { tellFailure } from "./tell-failure.ts";

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
