import type { LocalCall } from "../../chain/rpc/local-rpc.ts";
import {
  mockErc20DeployedBytecode,
  mockFeeTokenDeployedBytecode,
  mockPermitTokenBytecode,
  mockUsdtDeployedBytecode,
} from "../../contracts/mockTokens.ts";
import { accountSlot } from "../../methods/exact-eip3009/on-chain/storage-slots.ts";
import { type Address, type Hex, sameAddress, uintWord } from "../../protocol/hex.ts";
import type { Asset } from "../../protocol/networks.ts";
import { unitsOf } from "../../protocol/token-units.ts";
import { tokenInitCode } from "../../published/init-code.ts";
import {
  type LocalTokenName,
  type LocalTokens,
  localTokenNames,
  localTokens,
} from "../../published/local-chains.ts";
import type { PlacedContract } from "./place-contract.ts";
import { approvalWrites, payerBalances } from "./test-accounts.ts";

/*
 * The tokens besides USDC of a local chain, with the payers' money in them. Written, since their transactions would be most of
 * a start.
 */

/** Those whose constructors write storage alone. The one with permits keeps its domain in its code. */
const codes: Readonly<Partial<Record<LocalTokenName, Hex>>> = {
  plain: mockErc20DeployedBytecode,
  fee: mockFeeTokenDeployedBytecode,
  usdt: mockUsdtDeployedBytecode,
};

/** Where all of them keep what they keep. */
const slots = { balances: 0n, allowances: 1n, supply: 2n, name: 3n, symbol: 4n, decimals: 5n };

/** Those beside the chain's own asset, which may be at the address of one. */
export function localTokensBeside(asset: Asset): LocalTokens {
  return Object.fromEntries(
    Object.entries(localTokens).filter(([, { address }]) => !sameAddress(address, asset.address)),
  );
}

/** The one that needs its constructor. */
export function localTokenContracts({ permit }: LocalTokens): readonly PlacedContract[] {
  if (permit === undefined) return [];
  const initCode = tokenInitCode(mockPermitTokenBytecode, permit);
  return [{ name: "the permit token", address: permit.address, initCode }];
}

/** The calls that write the others, and what the test payers have of all and let Permit2 take: on every chain the same. */
export function localTokenWrites(tokens: LocalTokens): readonly LocalCall[] {
  return localTokenNames.flatMap((name) => {
    if (tokens[name] === undefined) return [];
    const known = writesOf.get(name) ?? writeToken(name);
    writesOf.set(name, known);
    return known;
  });
}

const writesOf = new Map<LocalTokenName, readonly LocalCall[]>();

function writeToken(name: LocalTokenName): readonly LocalCall[] {
  const token: Asset = localTokens[name];
  const { address } = token;
  const code = codes[name];
  const balances = payerBalances(token).filter(([, amount]) => amount !== 0n);
  const supply = balances.reduce((sum, [, amount]) => sum + amount, 0n);
  return [
    ...(code === undefined ? [] : deployment(token, code)),
    ...balances.map(([payer, amount]) => write(address, BigInt(accountSlot(payer, slots.balances)), amount)),
    write(address, slots.supply, supply),
    ...approvalWrites(address, slots.allowances),
  ];
}

function deployment(token: Asset, code: Hex): readonly LocalCall[] {
  const { address, name, decimals } = token;
  return [
    ["anvil_setCode", address, code],
    ["anvil_setNonce", address, "0x1"],
    write(address, slots.name, shortText(name)),
    write(address, slots.symbol, shortText(unitsOf(token).symbol)),
    write(address, slots.decimals, BigInt(decimals)),
  ];
}

/** A text of up to 31 bytes, as Solidity stores it: at the left, and twice its length in the last byte. */
function shortText(text: string): bigint {
  const bytes = Buffer.from(text);
  const word = Buffer.alloc(32);
  bytes.copy(word);
  word[31] = 2 * bytes.length;
  return BigInt(`0x${word.toString("hex")}`);
}

/** The same of one account's approval: USDT would refuse another one where there is one. */
export function localApprovalWrite(token: Address, account: Address, amount: bigint): LocalCall[] {
  return approvalWrites(token, slots.allowances, [[account, amount]]);
}

function write(token: Address, slot: bigint, value: bigint): LocalCall {
  return ["anvil_setStorageAt", token, `0x${uintWord(slot)}`, `0x${uintWord(value)}`];
}
