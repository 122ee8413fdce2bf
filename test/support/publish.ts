import { type Contents, channels, type Message } from "../../src/observe/channels/channels.ts";

/** Publishes a message as a service does, with the current time. */
export function publish<Kind extends keyof Contents>(kind: Kind, content: Contents[Kind]): void {
  const message: Message<Kind> = { ...content, kind, at: Date.now() };
  channels[kind].publish(() => message);
}
