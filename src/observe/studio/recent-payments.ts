import type { KeptPayment } from "./stored-payment.ts";

/**
 * The newest payments by their ids, up to a number; the oldest are forgotten first.
 *
 * A `Map` takes more time than all else that is done to keep a payment: to look for a new id and to remove an old one, it reads
 * the keys of other payments, which have left the processor's caches long ago. This reads numbers, and the payment that is
 * asked for.
 */
export class RecentPayments {
  readonly #most: number;
  readonly #forgotten: (payment: KeptPayment) => void;
  /** Each at its position modulo the length; none where one was before it was renewed, or forgotten. */
  readonly #payments: (KeptPayment | undefined)[];
  /** By some bits of an id, a payment that has them: its index in the list and 1, or 0 without any. */
  readonly #first = new Uint32Array(2 ** 16);
  /** Of each payment in the list, another one with these bits. */
  readonly #next: Uint32Array;
  readonly #bits: Uint16Array;
  readonly #messages: Uint32Array;
  readonly #isCarried: Uint8Array;
  /** A position is a number of payments and renewals that there were before. */
  #oldest = 0;
  #end = 0;
  #size = 0;
  /** How many messages are kept of all of them, besides those about transactions. */
  messages = 0;

  /**
   * @param most so many payments are kept
   * @param forgotten is called with each that a transaction carries. To read all that are forgotten would take long.
   */
  constructor(most: number, forgotten: (payment: KeptPayment) => void) {
    // Renewed payments leave places. A power of two, so that a position becomes an index without a division.
    const length = 2 ** Math.ceil(Math.log2(2 * most));
    this.#most = most;
    this.#forgotten = forgotten;
    this.#payments = new Array<undefined>(length).fill(undefined);
    this.#next = new Uint32Array(length);
    this.#bits = new Uint16Array(length);
    this.#messages = new Uint32Array(length);
    this.#isCarried = new Uint8Array(length);
  }

  find(id: string): KeptPayment | undefined {
    for (let link = this.#first[bitsOf(id)] ?? 0; link > 0; link = this.#next[link - 1] ?? 0) {
      const payment = this.#payments[link - 1];
      if (payment?.id === id) return payment;
    }
    return undefined;
  }

  /** Takes in a payment, or makes it one of the newest again. */
  renew(payment: KeptPayment): void {
    const known = this.#indexOf(payment);
    if (known === undefined) {
      if (this.#size >= this.#most) this.forgetOldest();
    } else {
      // What is asked for again and again must not push out all else.
      if (this.#end - payment.position <= this.#most / 10) return;
      this.#remove(known);
    }
    const index = this.#indexAt(this.#end);
    if (this.#payments[index] !== undefined) this.#forget(index);
    payment.position = this.#end++;
    this.#oldest = Math.max(this.#oldest, this.#end - this.#payments.length);
    this.#payments[index] = payment;
    this.#size++;
    this.#messages[index] = payment.kept;
    this.#isCarried[index] = payment.transactions.length > 0 ? 1 : 0;
    const bits = bitsOf(payment.id);
    this.#bits[index] = bits;
    this.#next[index] = this.#first[bits] ?? 0;
    this.#first[bits] = index + 1;
  }

  /** Counts messages that are kept of a payment, or that are not any more where there are less than none. */
  count(payment: KeptPayment, messages: number): void {
    const index = this.#indexOf(payment);
    if (index === undefined) return;
    this.messages += messages;
    this.#messages[index] = (this.#messages[index] ?? 0) + messages;
  }

  /** Notes that a transaction carries it. */
  noteCarried(payment: KeptPayment): void {
    const index = this.#indexOf(payment);
    if (index !== undefined) this.#isCarried[index] = 1;
  }

  /** Forgets the payment that was renewed before all others. Gives whether there is another one. */
  forgetOldest(): boolean {
    while (this.#oldest < this.#end) {
      const index = this.#indexAt(this.#oldest++);
      if (this.#payments[index] === undefined) continue;
      this.#forget(index);
      break;
    }
    return this.#size > 0;
  }

  /** Forgets all, and tells of none. Harnesses do so before each test: making new lists takes longer than few payments. */
  clear(): void {
    for (; this.#oldest < this.#end; this.#oldest++) {
      const index = this.#indexAt(this.#oldest);
      if (this.#payments[index] !== undefined) this.#remove(index);
    }
    this.messages = 0;
  }

  /** From the oldest to the newest. */
  *inOrder(): Generator<KeptPayment> {
    for (let position = this.#oldest; position < this.#end; position++) {
      const payment = this.#payments[this.#indexAt(position)];
      if (payment !== undefined) yield payment;
    }
  }

  /** So many of the newest, from the newest on. */
  newest(count: number): KeptPayment[] {
    const newest: KeptPayment[] = [];
    for (let position = this.#end - 1; position >= this.#oldest && newest.length < count; position--) {
      const payment = this.#payments[this.#indexAt(position)];
      if (payment !== undefined) newest.push(payment);
    }
    return newest;
  }

  /** Undefined when it was forgotten, or never taken in. */
  #indexOf(payment: KeptPayment): number | undefined {
    const index = this.#indexAt(payment.position);
    return this.#payments[index] === payment ? index : undefined;
  }

  #indexAt(position: number): number {
    return position & (this.#payments.length - 1);
  }

  #forget(index: number): void {
    const payment = this.#payments[index];
    this.messages -= this.#messages[index] ?? 0;
    this.#remove(index);
    if (this.#isCarried[index] === 1 && payment !== undefined) this.#forgotten(payment);
  }

  #remove(index: number): void {
    this.#payments[index] = undefined;
    this.#size--;
    const after = this.#next[index] ?? 0;
    const bits = this.#bits[index] ?? 0;
    let link = this.#first[bits] ?? 0;
    if (link === index + 1) {
      this.#first[bits] = after;
      return;
    }
    while (link > 0) {
      const next = this.#next[link - 1] ?? 0;
      if (next === index + 1) this.#next[link - 1] = after;
      link = next === index + 1 ? 0 : next;
    }
  }
}

/** 16 bits of an id, by its last four digits: an id is a hash, so they are as good as random. */
function bitsOf(id: string): number {
  let bits = 0;
  for (let index = id.length - 4; index < id.length; index++) {
    const code = id.charCodeAt(index);
    // The low four bits of the digit `a` are those of 1.
    bits = (bits << 4) | ((code + 9 * (code >> 6)) & 15);
  }
  return bits;
}
