import type { Hex } from "../../protocol/hex.ts";
import type { PaymentMessage } from "./payment-message.ts";
import type { TimedCall, TimedMessage } from "./stored-request.ts";

/** What was published about a transaction, once for all payments that it carries. */
export class KeptTransaction {
  /** Its hash and its txNonce. */
  readonly keys: readonly [Hex, string];
  /** The payments that it carries, by their ids. */
  readonly ids: readonly Hex[];
  readonly #messages: TimedMessage[] = [];
  /** How many messages there were before these. */
  omitted = 0;
  /** How many of them are kept. */
  payments = 0;

  constructor(keys: readonly [Hex, string], ids: readonly Hex[]) {
    this.keys = keys;
    this.ids = ids;
  }

  get kept(): number {
    return this.#messages.length;
  }

  /** What was published about it, in order. */
  told(): readonly TimedMessage[] {
    return this.#messages;
  }

  /** When the newest of that was published. */
  get changedAt(): number {
    return this.#messages.at(-1)?.at ?? 0;
  }

  keep(message: PaymentMessage, at: number): void {
    this.#messages.push({ message, at });
  }

  /** A node was asked about it. */
  call([call]: readonly [TimedCall]): void {
    this.keep(call, call.at);
  }

  /** Forgets the first so many messages. Gives how many there were. */
  forget(count: number): number {
    const forgotten = this.#messages.splice(0, count).length;
    this.omitted += forgotten;
    return forgotten;
  }
}
