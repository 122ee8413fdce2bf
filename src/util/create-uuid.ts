import { randomFillSync } from "node:crypto";

const digits = Buffer.from("0123456789abcdef");
const text = Buffer.from("00000000-0000-4000-8000-000000000000");

/** Where the digits of each of the 16 bytes stand in the text. */
const places = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

const random = Buffer.alloc(256 * places.length);
let used = random.length;

/**
 * A random UUID (version 4) as one string. That of `crypto.randomUUID` is put together of some seventeen strings, all of which
 * stay in memory with it: too many where ids of thousands of requests are kept.
 */
export function createUuid(): string {
  if (used === random.length) {
    randomFillSync(random);
    used = 0;
  }
  // The version, and the variant of RFC 9562.
  random[used + 6] = ((random[used + 6] ?? 0) & 0x0f) | 0x40;
  random[used + 8] = ((random[used + 8] ?? 0) & 0x3f) | 0x80;
  for (const place of places) {
    const byte = random[used++] ?? 0;
    text[place] = digits[byte >> 4] ?? 0;
    text[place + 1] = digits[byte & 15] ?? 0;
  }
  return text.toString("latin1");
}
