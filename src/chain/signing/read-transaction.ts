import type { Hex } from "../../protocol/hex.ts";

/**
 * The calldata of a signed transaction of type 2 (EIP-1559), which is one of ours: read by hand, since viem's import
 * takes 150 ms of every start.
 */
export function readCalldata(raw: Hex): Hex {
  // 0x02, and the list; in it chain id, txNonce, tip, fee, gas limit, to, value.
  let { start } = readItem(raw, 4);
  for (let index = 0; index < 7; index++) start = readItem(raw, start).end;
  const data = readItem(raw, start);
  return `0x${raw.slice(data.start, data.end)}`;
}

/** Where the content of an RLP item or list begins and ends, which itself begins at this character. */
function readItem(raw: Hex, at: number): { start: number; end: number } {
  const first = Number.parseInt(raw.slice(at, at + 2), 16);
  if (first < 0x80) return { start: at, end: at + 2 };
  // Lists differ from bytes in their first byte alone.
  const length = first < 0xc0 ? first - 0x80 : first - 0xc0;
  if (length <= 55) return { start: at + 2, end: at + 2 + 2 * length };
  const start = at + 2 + 2 * (length - 55);
  return { start, end: start + 2 * Number.parseInt(raw.slice(at + 2, start), 16) };
}
