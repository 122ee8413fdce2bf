import { type Address, isAddress, isBytes } from "../../protocol/hex.ts";
import { readTransaction } from "../../protocol/signed-transaction.ts";

/** The facilitator contract that a stored settle transaction calls; undefined if it calls the token itself, or is unreadable. */
export function contractOf(raw: string, asset: string): Address | undefined {
  if (!isBytes(raw)) return undefined;
  const { to } = readTransaction(raw);
  return isAddress(to) && to !== asset ? to : undefined;
}
