import { type Address, type Hex, isBytes32 } from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { isObject } from "../../util/json.ts";

/** The tracer that shows what a call would change. */
export const changesTracer = { tracer: "prestateTracer", tracerConfig: { diffMode: true } } as const;

/** A word of storage as a call would leave it. The address is in lower case. */
export type StorageChange = { address: Address; slot: Hex; value: Hex };

/** What `debug_traceCall` with {@link changesTracer} says: the accounts that would change, and their storage. */
export function readStorageChanges(trace: unknown): {
  accounts: readonly string[];
  storage: readonly StorageChange[];
} {
  const unreadable = () => new KitError("The node's debug_traceCall gave no state difference");
  if (!isObject(trace) || !isObject(trace.post)) throw unreadable();
  const accounts: string[] = [];
  const storage: StorageChange[] = [];
  for (const [spelled, account] of Object.entries(trace.post)) {
    if (!isObject(account)) throw unreadable();
    const address: Address = `0x${spelled.slice(2).toLowerCase()}`;
    accounts.push(address);
    for (const [slot, value] of Object.entries(account.storage ?? {})) {
      if (!isBytes32(slot) || !isBytes32(value)) throw unreadable();
      storage.push({ address, slot, value });
    }
  }
  return { accounts, storage };
}
