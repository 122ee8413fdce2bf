import { channel as nodeChannel } from "node:diagnostics_channel";

/** A named `node:diagnostics_channel` with one type of message. */
export type Channel<Message> = {
  readonly name: string;
  /** Publishes to all subscribers, at once. `describe` is called only when there are any. */
  publish(describe: () => Message): void;
  /** Whether there are subscribers, for what would have to be collected before it is published. */
  isHeard(): boolean;
  /**
   * Calls the listener with every message, inside the call that publishes it: it must be quick and must not throw,
   * since Node makes what it throws an uncaught exception.
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
      if (channel.hasSubscribers) channel.publish(describe());
    },
    isHeard: () => channel.hasSubscribers,
    subscribe(listener) {
      // Published only above, where the type of the message is checked.
      const onMessage = (message: unknown) => listener(message as Message);
      channel.subscribe(onMessage);
      return () => channel.unsubscribe(onMessage);
    },
  };
}
