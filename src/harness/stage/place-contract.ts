import { KitError } from "../../errors.ts";
import { type Address, type Hex, sameAddress } from "../../protocol/hex.ts";
import { harnessAccounts } from "../../published/accounts.ts";
import type { LocalCall, LocalRpc } from "../../rpc/local-rpc.ts";
import { isBytes } from "../../rpc/read-hex.ts";
import { changesTracer, readStorageChanges } from "../nodes/storage-changes.ts";

/** A contract, and the address it is to stand at. */
export type PlacedContract = {
  /** What messages call it. */
  name: string;
  address: Address;
  /** Creation code with the constructor's arguments. */
  initCode: Hex;
  /** Code that the contract calls, without a constructor of its own, and where it goes. It is put there first. */
  code?: readonly (readonly [address: Address, code: Hex])[];
};

/** Enough for any constructor, below what a block holds. */
const constructorGas = "0x2000000";

/**
 * Runs a contract's constructor at a given address, and returns the calls that write what came of it: code, nonce
 * and storage. Several contracts' writes can then go out in one batch. Only code that the contract calls is written
 * at once.
 *
 * The constructor runs for real, on the node, but in a call with state overrides: the creation code stands at the
 * address with its storage empty. What it returns is the code, what it changes the storage, and `address(this)` is
 * right. Nothing is mined and no nonce is used. The differences from a real deployment: its events are not on the
 * chain, and the address has code while the constructor runs.
 *
 * Where something stands already, the code is replaced, and so is each slot that the constructor writes. Slots that
 * only the former contract wrote stay as they are: no call tells which there are. On a fork there are none; see
 * `createBlankAccounts`.
 *
 * @throws {KitError} when the constructor reverts, or changes another account
 */
export async function runConstructor(rpc: LocalRpc, contract: PlacedContract): Promise<LocalCall[]> {
  const { name, address, initCode, code: calledCode = [] } = contract;
  if (calledCode.length > 0) {
    await rpc.batch(calledCode.map(([where, code]) => ["anvil_setCode", where, code]));
  }
  const sender = harnessAccounts.treasury.address;
  const call = { from: sender, to: address, gas: constructorGas };
  const overrides = { [address]: { code: initCode, state: {} } };
  const tracer = { ...changesTracer, stateOverrides: overrides };

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
  const { accounts, storage } = readStorageChanges(trace);
  const other = accounts.find((changed) => !sameAddress(changed, sender) && !sameAddress(changed, address));
  if (other !== undefined) {
    throw new KitError(`The constructor of ${name} changes ${other}, which is not placed with it`);
  }
  for (const { slot, value } of storage) writes.push(["anvil_setStorageAt", address, slot, value]);
  return writes;
}

/** Puts contracts, as their constructors leave them, at given addresses: two round trips for all of them. */
export async function placeContracts(rpc: LocalRpc, contracts: readonly PlacedContract[]): Promise<void> {
  const writes = await Promise.all(contracts.map((contract) => runConstructor(rpc, contract)));
  await rpc.batch(writes.flat());
}
