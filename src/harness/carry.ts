import { isBytes, isWord } from "../chain/read-hex.ts";
import { KitError } from "../errors/base.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import { harnessAccounts } from "./accounts.ts";
import type { LocalCall, LocalRpc } from "./local-rpc.ts";

/** A contract, and the address it is to stand at. */
export type CarriedContract = {
  /** What messages call it. */
  name: string;
  address: Address;
  /** Creation code with the constructor's arguments. */
  initCode: Hex;
};

/** Enough for any constructor, below what a block holds. */
const constructorGas = "0x2000000";

/**
 * Runs a contract's constructor at a given address, and returns the calls that write what came of it: code, nonce
 * and storage. Several contracts' writes can then go out in one batch.
 *
 * The constructor runs for real, on the node, but in a call with state overrides: the creation code stands at the
 * address with its storage empty. What it returns is the code, what it changes the storage, and `address(this)` is
 * right. Nothing is mined and no nonce is used. The differences from a real deployment: its events are not on the
 * chain, and the address has code while the constructor runs.
 *
 * Where something stands already (on a fork), the code is replaced, and so is each slot that the constructor
 * writes. Slots that only the former contract wrote stay as they are: no call tells which there are.
 *
 * @throws {KitError} when the constructor reverts, or changes another account
 */
export async function runConstructor(rpc: LocalRpc, contract: CarriedContract): Promise<LocalCall[]> {
  const { name, address, initCode } = contract;
  const sender = harnessAccounts.treasury.address;
  const call = { from: sender, to: address, gas: constructorGas };
  const overrides = { [address]: { code: initCode, state: {} } };
  const tracer = { tracer: "prestateTracer", tracerConfig: { diffMode: true }, stateOverrides: overrides };

  const [code, trace] = await rpc
    .batch([
      ["eth_call", call, "latest", overrides],
      ["debug_traceCall", call, "latest", tracer],
    ])
    .catch((cause: unknown) => {
      throw new KitError(`The constructor of ${name} failed`, { cause });
    });
  if (!isBytes(code) || code === "0x") throw new KitError(`The constructor of ${name} returned no code`);

  const writes: LocalCall[] = [
    ["anvil_setCode", address, code],
    ["anvil_setNonce", address, "0x1"],
  ];
  for (const [changed, { storage }] of Object.entries(readPost(trace))) {
    if (changed === sender.toLowerCase()) continue;
    if (changed !== address.toLowerCase()) {
      throw new KitError(`The constructor of ${name} changes ${changed}, which cannot be carried along`);
    }
    for (const [slot, value] of Object.entries(storage)) {
      writes.push(["anvil_setStorageAt", address, slot, value]);
    }
  }
  return writes;
}

/** Puts contracts, as their constructors leave them, at given addresses: two round trips for all of them. */
export async function carryContracts(rpc: LocalRpc, contracts: readonly CarriedContract[]): Promise<void> {
  const writes = await Promise.all(contracts.map((contract) => runConstructor(rpc, contract)));
  await rpc.batch(writes.flat());
}

/** The changed accounts, by address in lower case, of a `prestateTracer` in diff mode. */
function readPost(trace: unknown): Record<string, { storage: Record<Hex, Hex> }> {
  const unreadable = () => new KitError("The node's debug_traceCall gave no state difference");
  if (!isObject(trace) || !isObject(trace.post)) throw unreadable();
  const accounts: Record<string, { storage: Record<Hex, Hex> }> = {};
  for (const [address, account] of Object.entries(trace.post)) {
    if (!isObject(account)) throw unreadable();
    const storage: Record<Hex, Hex> = {};
    for (const [slot, value] of Object.entries(account.storage ?? {})) {
      if (!isWord(slot) || !isWord(value)) throw unreadable();
      storage[slot] = value;
    }
    accounts[address.toLowerCase()] = { storage };
  }
  return accounts;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
