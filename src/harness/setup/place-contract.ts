import type { LocalCall, LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { mockUsdcDeployedBytecode, usdcSignaturesDeployedBytecode } from "../../contracts/mockUsdc.ts";
import { batchSettlementContracts } from "../../methods/batch-settlement/on-chain/local-contracts.ts";
import type { LocalContract } from "../../methods/on-chain/settling.ts";
import { settlings } from "../../methods/on-chain/table.ts";
import { harnessAccounts, usdcImplementationAddress, usdcSignaturesAddress } from "../../payer/accounts.ts";
import { mockUsdcInitCode } from "../../payer/init-code.ts";
import { type Address, type Hex, isBytes, isBytes32, sameAddress } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { createBoundedMap } from "../../util/cache.ts";
import { KitError } from "../../util/errors.ts";
import { isObject } from "../../util/json.ts";

/** A contract to place at an address. */
export type PlacedContract = {
  /** The name in messages. */
  name: string;
  address: Address;
  initCode: Hex;
  /** Code that the contract calls and that has no constructor, with its addresses. It is written first. */
  code?: readonly (readonly [address: Address, code: Hex])[];
};

/** Enough for any constructor, and below the block gas limit. */
const constructorGas = "0x2000000";

const sender = harnessAccounts.treasury.address;

/**
 * Runs the constructors of contracts at given addresses, and returns the calls that write the results: code, nonce and
 * storage. Only the code that the contracts call is written immediately. Takes two requests in total.
 *
 * A constructor really runs on the node, but in a call with state overrides: the creation code is at the address, with empty
 * storage. Its return value is the code, its state changes are the storage, and `address(this)` is correct. Nothing is mined
 * and no nonce is used. Unlike in a real deployment, events are not on the chain, and the address has code while the
 * constructor runs.
 *
 * If the address already has a contract, its code is replaced, and so is each slot that the constructor writes. Other slots
 * of the former contract stay, because no call lists them. On a fork there are none; see `createBlankAccounts`.
 *
 * @throws {KitError} if a constructor reverts, or changes another account
 */
export async function runConstructors(
  rpc: LocalRpc,
  contracts: readonly PlacedContract[],
): Promise<LocalCall[]> {
  await rpc.batch(calledCode(contracts));
  const results = await rpc.batch(contracts.flatMap(callsOf)).catch(async (error: unknown) => {
    // Run each one separately to find out which failed.
    for (const contract of contracts) {
      await rpc.batch(callsOf(contract)).catch((cause: unknown) => {
        throw new KitError(`The constructor of ${contract.name} failed`, { cause });
      });
    }
    throw error;
  });
  return contracts.flatMap((contract, index) =>
    writesOf(contract, results[2 * index], results[2 * index + 1]),
  );
}

/** Cached results of constructors on otherwise empty chains, about 150 kB each. */
const known = createBoundedMap<string, readonly LocalCall[]>(16);

/**
 * Like {@link runConstructors}, for a chain that holds nothing else. The result then depends only on code, address and
 * chain id, so each constructor runs once per process, and later calls make no request.
 *
 * @returns the calls that write everything, including the code that the contracts call
 */
export async function runConstructorsOnce(
  rpc: LocalRpc,
  chainId: number,
  contracts: readonly PlacedContract[],
): Promise<readonly LocalCall[]> {
  const key = JSON.stringify([chainId, contracts]);
  const writes = known.get(key) ?? [...calledCode(contracts), ...(await runConstructors(rpc, contracts))];
  known.set(key, writes);
  return writes;
}

function calledCode(contracts: readonly PlacedContract[]): LocalCall[] {
  return contracts.flatMap(({ code = [] }) => code).map(([where, code]) => ["anvil_setCode", where, code]);
}

/** The first call returns the code, the second the storage. */
function callsOf({ address, initCode }: PlacedContract): LocalCall[] {
  const call = { from: sender, to: address, gas: constructorGas };
  const overrides = { [address]: { code: initCode, state: {} } };
  return [
    ["eth_call", call, "latest", overrides],
    ["debug_traceCall", call, "latest", { ...changesTracer, stateOverrides: overrides }],
  ];
}

function writesOf({ name, address }: PlacedContract, code: unknown, trace: unknown): LocalCall[] {
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

/** The tracer options that report the state changes of a call. */
export const changesTracer = { tracer: "prestateTracer", tracerConfig: { diffMode: true } } as const;

/** A storage word after a call. The address is in lower case. */
export type StorageChange = { address: Address; slot: Hex; value: Hex };

/** Reads a `debug_traceCall` result with {@link changesTracer}: the accounts that would change, and their storage. */
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

/** The slot of MockUSDC's `mapping(address owner => mapping(address spender => uint256)) allowance`. */
export const mockAllowanceSlot = 10n;

/** The mock of a token at the token's address: a proxy like USDC's, and the code behind it. */
export function mockToken(asset: Asset): PlacedContract {
  return {
    name: "MockUSDC",
    address: asset.address,
    initCode: mockUsdcInitCode(asset),
    code: [
      [usdcImplementationAddress, mockUsdcDeployedBytecode],
      [usdcSignaturesAddress, usdcSignaturesDeployedBytecode],
    ],
  };
}

/** Stand-ins for contracts that have the same address on every public chain. */
export const publicContracts: readonly LocalContract[] = [
  ...new Set(settlings.flatMap(({ localContracts = [] }) => localContracts)),
  ...batchSettlementContracts,
];

/** The calls that write them on a chain with this token. */
export async function publicContractCode(token: Asset): Promise<LocalCall[]> {
  return Promise.all(
    publicContracts.map(async ({ address, code }) => ["anvil_setCode", address, await code(token)]),
  );
}

/** The same for a fork, but only for contracts that the chain does not have. */
export async function missingContractCode(rpc: LocalRpc, token: Asset): Promise<LocalCall[]> {
  const codes = await rpc.batch(publicContracts.map(({ address }) => ["eth_getCode", address, "latest"]));
  return (await publicContractCode(token)).filter((_, index) => codes[index] === "0x");
}
