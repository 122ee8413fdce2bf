import type { Hex } from "./hex.ts";

/** A place in a list of settlements: after this one. */
export type Cursor = { claimedAt: number; id: Hex };

/** A cursor as text that needs no escaping in URLs and command lines. */
export function writeCursor({ claimedAt, id }: Cursor): string {
  return `${claimedAt}-${id.slice(2)}`;
}

/** Reads a cursor; null when the text is not one. */
export function readCursor(text: string): Cursor | null {
  const [, claimedAt, id] = /^(\d{1,15})-([0-9a-f]{64})$/.exec(text) ?? [];
  return claimedAt === undefined || id === undefined ? null : { claimedAt: Number(claimedAt), id: `0x${id}` };
}
