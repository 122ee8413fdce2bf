import type { LocalCall, LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { selector } from "../../chain/views.ts";
import {
  mockExactPermit2ProxyDeployedBytecode,
  mockMulticall3DeployedBytecode,
  mockPermit2DeployedBytecode,
  mockUptoPermit2ProxyDeployedBytecode,
} from "../../contracts/mockPermit2.ts";
import { authorizationSlot } from "../../methods/exact-eip3009/on-chain/storage-slots.ts";
import { exactProxyAddress, permit2Address, uptoProxyAddress } from "../../methods/permit2/permit.ts";
import { type Address, addressWord, type Hex, uintWord } from "../../protocol/hex.ts";
import { type TestPayer, testPayers } from "../../published/test-payers.ts";
import { changesTracer, readStorageChanges } from "./place-contract.ts";

/** Where public chains have it: public clients ask it for what explains a failure. */
const multicall3Address: Address = "0xcA11bde05977b3631167028862bE2a173976CA11";

/** What stands at the same address on every public chain, and here as stand-ins that behave alike. */
export const publicContracts: readonly (readonly [address: Address, code: Hex])[] = [
  [permit2Address, mockPermit2DeployedBytecode],
  [exactProxyAddress, mockExactPermit2ProxyDeployedBytecode],
  [uptoProxyAddress, mockUptoPermit2ProxyDeployedBytecode],
  [multicall3Address, mockMulticall3DeployedBytecode],
];

/** The calls that put them in place. */
export function publicContractCode(): LocalCall[] {
  return publicContracts.map(([address, code]) => ["anvil_setCode", address, code]);
}

/** The same on a fork, where those that the chain has stay as they are. */
export async function missingContractCode(rpc: LocalRpc): Promise<LocalCall[]> {
  const codes = await rpc.batch(publicContracts.map(([address]) => ["eth_getCode", address, "latest"]));
  return publicContractCode().filter((_, index) => codes[index] === "0x");
}

const all = 2n ** 256n - 1n;

/** How much Permit2 may take of accounts' tokens, in their smallest unit. */
type Approvals = readonly (readonly [account: Address, amount: bigint])[];

/** Those of the test payers. */
const ofTestPayers: Approvals = Object.values<TestPayer>(testPayers).map(({ address, approved }) => [
  address,
  approved === undefined ? all : approved === "nothing" ? 0n : BigInt(approved),
]);

/** The calls that write approvals, by default the test payers', into a token that keeps its allowances in this slot. */
export function approvalWrites(
  token: Address,
  mappingSlot: bigint,
  approvals: Approvals = ofTestPayers,
): LocalCall[] {
  const spender: Hex = `0x${addressWord(permit2Address)}`;
  return approvals.map(([payer, amount]) => [
    "anvil_setStorageAt",
    token,
    `0x${uintWord(authorizationSlot(payer, spender, mappingSlot))}`,
    `0x${uintWord(amount)}`,
  ]);
}

/** An amount that nobody approves. */
const unusual = 2n ** 255n + 402n;

const approveSelector = selector("approve(address,uint256)");

/**
 * Writes approvals, by default the test payers', into a token whose storage is not known: what the accounts' calls of `approve`
 * would change.
 */
export async function writeApprovals(
  rpc: LocalRpc,
  token: Address,
  approvals: Approvals = ofTestPayers,
): Promise<void> {
  const spender = addressWord(permit2Address);
  const traces = await rpc.batch(
    approvals.map(([from, amount]) => [
      "debug_traceCall",
      // A trace leaves out what becomes zero: the place is found by another amount.
      { from, to: token, data: `${approveSelector}${spender}${uintWord(amount === 0n ? unusual : amount)}` },
      "latest",
      changesTracer,
    ]),
  );
  const writes = traces.flatMap((trace, index) =>
    readStorageChanges(trace).storage.map(({ address, slot, value }): LocalCall => {
      const written: Hex = approvals[index]?.[1] === 0n ? `0x${uintWord(0n)}` : value;
      return ["anvil_setStorageAt", address, slot, written];
    }),
  );
  await rpc.batch(writes);
}
