import type { LocalCall, LocalRpc } from "../../chain/rpc/local-rpc.ts";
import { selector } from "../../chain/views.ts";
import {
  mock7702DelegateDeployedBytecode,
  mockGasBurningWalletDeployedBytecode,
} from "../../contracts/mockWallets.ts";
import { methods } from "../../methods/methods.ts";
import { delegateAddress, harnessAccounts, revertingDelegateAddress } from "../../payer/accounts.ts";
import { fickleWalletInitCode } from "../../payer/init-code.ts";
import { type TestPayer, testPayers } from "../../payer/test-payers.ts";
import { walletInitCode } from "../../payer/undeployed-wallet.ts";
import { type Address, addressWord, type Hex, uintWord } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { changesTracer, type PlacedContract, readStorageChanges } from "./place-contract.ts";
import { nestedSlot } from "./storage-slots.ts";

/* Puts each test payer into its state on a chain. */

const mintSelector = selector("mint(address,uint256)");
const transferSelector = selector("transfer(address,uint256)");
const blacklistSelector = selector("blacklist(address)");

/** Code that reverts every call: `PUSH0 PUSH0 REVERT`. */
const revertingCode = "0x5f5ffd";

/** The balance of each payer in whole tokens, except the empty one. */
const wholeTokens = 1_000_000n;

/** All accounts with a fixed state on every local chain, whatever the real chain has there: their keys are public. */
export const placedAccounts: readonly Address[] = [
  ...Object.values(testPayers).map(({ address }) => address),
  ...Object.values(harnessAccounts).map(({ address }) => address),
  delegateAddress,
  revertingDelegateAddress,
];

/** The test payers that are contracts with a constructor. */
export function testAccountContracts(): readonly PlacedContract[] {
  const { smartWallet, fickle } = testPayers;
  return [
    {
      name: "the test payer smartWallet",
      address: smartWallet.address,
      initCode: walletInitCode(smartWallet.owner),
    },
    { name: "the test payer fickle", address: fickle.address, initCode: fickleWalletInitCode(fickle.owner) },
  ];
}

/** The calls that write all other code: contracts without a constructor, and delegations (EIP-7702). */
export function walletCode(): readonly LocalCall[] {
  return [
    ["anvil_setCode", testPayers.gasBurner.address, mockGasBurningWalletDeployedBytecode],
    ["anvil_setCode", delegateAddress, mock7702DelegateDeployedBytecode],
    ["anvil_setCode", revertingDelegateAddress, revertingCode],
    ["anvil_setCode", testPayers.delegated.address, delegationTo(delegateAddress)],
    ["anvil_setCode", testPayers.hijacked.address, delegationTo(revertingDelegateAddress)],
  ];
}

/** The token balance of each payer, in the smallest unit. */
export function payerBalances({ decimals }: Asset): readonly (readonly [payer: Address, amount: bigint])[] {
  const full = wholeTokens * 10n ** BigInt(decimals);
  return Object.values(testPayers).map(({ address, outcome }) => [
    address,
    outcome === "insufficient_funds" ? 0n : full,
  ]);
}

/** The calldata that the token's owner sends to fund payers and to blacklist one. */
export function testAccountTokenCalls(asset: Asset): readonly Hex[] {
  const mints = payerBalances(asset).flatMap(([address, amount]) =>
    amount === 0n ? [] : [mintCall(address, amount)],
  );
  return [...mints, `${blacklistSelector}${addressWord(testPayers.blacklisted.address)}`];
}

export function mintCall(account: Address, amount: bigint): Hex {
  return `${mintSelector}${addressWord(account)}${uintWord(amount)}`;
}

export function transferCall(account: Address, amount: bigint): Hex {
  return `${transferSelector}${addressWord(account)}${uintWord(amount)}`;
}

/** The code of an account that is delegated to a contract (EIP-7702). */
function delegationTo(contract: Address): Hex {
  return `0xef0100${contract.slice(2).toLowerCase()}`;
}

const all = 2n ** 256n - 1n;

/** The contracts that payers approve on tokens. */
const spenders = [...new Set(methods.flatMap(({ spender }) => spender ?? []))];

/** The allowances that accounts give to each spender, in the token's smallest unit. */
type Approvals = readonly (readonly [account: Address, amount: bigint])[];

/** The approvals of the test payers. */
const ofTestPayers: Approvals = Object.values<TestPayer>(testPayers).map(({ address, approved }) => [
  address,
  approved === undefined ? all : approved === "nothing" ? 0n : BigInt(approved),
]);

/** The calls that write approvals, by default the test payers', into a token with its allowances at `mappingSlot`. */
export function approvalWrites(
  token: Address,
  mappingSlot: bigint,
  approvals: Approvals = ofTestPayers,
): LocalCall[] {
  return spenders.flatMap((spender) =>
    approvals.map(
      ([payer, amount]): LocalCall => [
        "anvil_setStorageAt",
        token,
        `0x${uintWord(nestedSlot(payer, `0x${addressWord(spender)}`, mappingSlot))}`,
        `0x${uintWord(amount)}`,
      ],
    ),
  );
}

/** An amount that nobody approves in practice. */
const unusual = 2n ** 255n + 402n;

const approveSelector = selector("approve(address,uint256)");

/**
 * Writes approvals, by default the test payers', into a token with an unknown storage layout, by applying the storage changes
 * that `approve` calls of the accounts would make.
 */
export async function writeApprovals(
  rpc: LocalRpc,
  token: Address,
  approvals: Approvals = ofTestPayers,
): Promise<void> {
  const calls = spenders.flatMap((spender) =>
    approvals.map(([from, amount]) => ({ from, amount, spender: addressWord(spender) })),
  );
  const traces = await rpc.batch(
    calls.map(({ from, amount, spender }) => [
      "debug_traceCall",
      // A trace omits slots that become zero, so the slot is found with another amount.
      { from, to: token, data: `${approveSelector}${spender}${uintWord(amount === 0n ? unusual : amount)}` },
      "latest",
      changesTracer,
    ]),
  );
  const writes = traces.flatMap((trace, index) =>
    readStorageChanges(trace).storage.map(({ address, slot, value }): LocalCall => {
      const written: Hex = calls[index]?.amount === 0n ? `0x${uintWord(0n)}` : value;
      return ["anvil_setStorageAt", address, slot, written];
    }),
  );
  await rpc.batch(writes);
}
