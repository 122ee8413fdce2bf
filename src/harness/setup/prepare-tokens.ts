import { type LocalCall, type LocalRpc, RpcRefusal } from "../../chain/rpc/local-rpc.ts";
import { selector } from "../../chain/views.ts";
import {
  mockErc20DeployedBytecode,
  mockFeeTokenDeployedBytecode,
  mockPermitTokenBytecode,
  mockUsdtDeployedBytecode,
} from "../../contracts/mockTokens.ts";
import { domainSeparator } from "../../methods/eip712.ts";
import { harnessAccounts } from "../../payer/accounts.ts";
import { tokenInitCode } from "../../payer/init-code.ts";
import {
  type LocalTokenName,
  type LocalTokens,
  localTokenNames,
  localTokens,
} from "../../payer/local-chains.ts";
import { testPayers } from "../../payer/test-payers.ts";
import {
  type Address,
  addressWord,
  type Hex,
  isBytes,
  sameAddress,
  uintWord,
  wordAt,
} from "../../protocol/hex.ts";
import type { Asset, Network } from "../../protocol/networks.ts";
import { unitsOf } from "../../protocol/token-units.ts";
import { KitError } from "../../util/errors.ts";
import { changesTracer, type PlacedContract, readStorageChanges } from "./place-contract.ts";
import { accountSlot } from "./storage-slots.ts";
import { approvalWrites, payerBalances, writeApprovals } from "./test-accounts.ts";

const decimalsSelector = selector("decimals()");
const domainSeparatorSelector = selector("DOMAIN_SEPARATOR()");
const balanceOfSelector = selector("balanceOf(address)");
const isBlacklistedSelector = selector("isBlacklisted(address)");
const blacklistSelector = selector("blacklist(address)");
/** The views that return who may blacklist: FiatToken has a role for it, look-alikes leave it to the owner. */
const blacklisterSelectors = [selector("blacklister()"), selector("owner()")];

/** The treasury's balance in whole tokens: more than all USDC in existence, but within FiatToken's 255 bits. */
const treasuryTokens = 10n ** 12n;

/**
 * Sets up the test payers on the real token of a forked chain. Balances are written to storage, because no account can mint.
 * Also returns whether the token has a blacklist; if not, the test payer `blacklisted` pays like any other.
 *
 * @throws {KitError} if it is not the expected token, or its balances cannot be written
 */
export async function prepareRealToken(
  rpc: LocalRpc,
  network: Network,
  asset: Asset,
): Promise<{ hasBlacklist: boolean }> {
  await checkToken(rpc, network, asset);
  const whole = 10n ** BigInt(asset.decimals);
  const balances: readonly (readonly [Address, bigint])[] = [
    ...payerBalances(asset),
    // Strangers may have sent tokens to this published address, which would distort the sums in tests.
    [harnessAccounts.recipient.address, 0n],
    [harnessAccounts.treasury.address, treasuryTokens * whole],
  ];
  await writeBalances(rpc, network, asset, balances);
  await writeApprovals(rpc, asset.address);
  // Last: FiatToken keeps balance and blacklist flag in one word, so writing a balance clears the flag.
  const hasBlacklist = await blacklist(rpc, asset.address, testPayers.blacklisted.address);
  return { hasBlacklist };
}

async function checkToken(rpc: LocalRpc, { name, chainId }: Network, asset: Asset): Promise<void> {
  const { address } = asset;
  const [decimals, separator] = await Promise.all([
    read(rpc, address, decimalsSelector),
    read(rpc, address, domainSeparatorSelector),
  ]);
  if (separator === undefined || decimals === undefined) {
    throw new KitError(`There is no EIP-3009 token at ${address} on the fork of ${name}`, {
      hints: [`Is the RPC really one of ${name}, and the block younger than the token?`],
    });
  }
  if (!sameAddress(separator, domainSeparator(asset, chainId))) {
    throw new KitError(
      `The token at ${address} on the fork of ${name} signs for another domain than name "${asset.name}", version "${asset.version}"`,
      { hints: ["Its name and version must be those of the token's EIP-712 domain."] },
    );
  }
  if (BigInt(decimals) !== BigInt(asset.decimals)) {
    throw new KitError(
      `The token at ${address} on the fork of ${name} has ${BigInt(decimals)} decimals, not ${asset.decimals}`,
    );
  }
}

async function writeBalances(
  rpc: LocalRpc,
  { name }: Network,
  { address }: Asset,
  balances: readonly (readonly [Address, bigint])[],
): Promise<void> {
  const balanceOf = (account: Address) => read(rpc, address, `${balanceOfSelector}${addressWord(account)}`);
  // Preload all balances at once. When writing them, the node would fetch them from the remote one by one.
  await Promise.all(balances.map(([account]) => balanceOf(account)));
  await rpc
    .batch(
      balances.map(([account, amount]) => ["anvil_dealERC20", account, address, `0x${amount.toString(16)}`]),
    )
    .catch((cause: unknown) => {
      throw new KitError(`The balances of the token at ${address} on the fork of ${name} cannot be written`, {
        cause,
        hints: cause instanceof KitError ? cause.hints : [],
      });
    });
  for (const [account, amount] of balances) {
    const balance = await balanceOf(account);
    if (balance !== undefined && BigInt(balance) === amount) continue;
    throw new KitError(
      `The balance of ${account} on the fork of ${name} was written as ${amount} and reads as ${balance ?? "nothing"}`,
      { hints: [`The token at ${address} keeps its balances in a way that cannot be written.`] },
    );
  }
}

/** Blacklists an account by writing the storage changes of the blacklister's call. Returns true if that worked. */
async function blacklist(rpc: LocalRpc, token: Address, account: Address): Promise<boolean> {
  for (const byWhom of blacklisterSelectors) {
    const word = await read(rpc, token, byWhom);
    if (word === undefined) continue;
    const call = {
      from: `0x${word.slice(26)}`,
      to: token,
      data: `${blacklistSelector}${addressWord(account)}`,
    };
    if ((await callOrRevert(rpc, call)) === undefined) continue;
    const { storage } = readStorageChanges(
      await rpc.request("debug_traceCall", call, "latest", changesTracer),
    );
    await rpc.batch(
      storage.map(({ address, slot, value }): LocalCall => ["anvil_setStorageAt", address, slot, value]),
    );
    const marked = await read(rpc, token, `${isBlacklistedSelector}${addressWord(account)}`);
    if (marked !== undefined && BigInt(marked) === 1n) return true;
  }
  return false;
}

/** Returns the first word of a view's result; undefined if it reverts or returns less. */
async function read(rpc: LocalRpc, to: Address, data: Hex): Promise<Hex | undefined> {
  const answer = await callOrRevert(rpc, { to, data });
  const word = answer === undefined ? undefined : wordAt(answer, 0);
  return word === undefined ? undefined : `0x${word}`;
}

/** Returns the result of a call; undefined if it reverts. */
async function callOrRevert(rpc: LocalRpc, call: object): Promise<Hex | undefined> {
  try {
    const answer = await rpc.request("eth_call", call, "latest");
    return isBytes(answer) ? answer : undefined;
  } catch (error) {
    if (error instanceof RpcRefusal) return undefined;
    throw error;
  }
}

/*
 * The tokens besides USDC on a local chain, with the payers' balances. They are written to storage, because transactions
 * would take most of the start-up time.
 */

/** The code of tokens whose constructors only write storage. Not `permit`: that one keeps its EIP-712 domain in its code. */
const codes: Readonly<Partial<Record<LocalTokenName, Hex>>> = {
  plain: mockErc20DeployedBytecode,
  fee: mockFeeTokenDeployedBytecode,
  usdt: mockUsdtDeployedBytecode,
};

/** The storage layout of all these tokens. */
const slots = { balances: 0n, allowances: 1n, supply: 2n, name: 3n, symbol: 4n, decimals: 5n };

/** The local tokens, except one at the address of the chain's own asset. */
export function localTokensBeside(asset: Asset): LocalTokens {
  return Object.fromEntries(
    Object.entries(localTokens).filter(([, { address }]) => !sameAddress(address, asset.address)),
  );
}

/** The permit token, whose constructor must run. */
export function localTokenContracts({ permit }: LocalTokens): readonly PlacedContract[] {
  if (permit === undefined) return [];
  const initCode = tokenInitCode(mockPermitTokenBytecode, permit);
  return [{ name: "the permit token", address: permit.address, initCode }];
}

/** The calls that write the other tokens, and the test payers' balances and approvals in all; the same on every chain. */
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

/** A string of up to 31 bytes as Solidity stores it: left-aligned, with twice its length in the last byte. */
function shortText(text: string): bigint {
  const bytes = Buffer.from(text);
  const word = Buffer.alloc(32);
  bytes.copy(word);
  word[31] = 2 * bytes.length;
  return BigInt(`0x${word.toString("hex")}`);
}

/** The calls that write one account's approval. USDT's own `approve` would refuse to change an existing one. */
export function localApprovalWrite(token: Address, account: Address, amount: bigint): LocalCall[] {
  return approvalWrites(token, slots.allowances, [[account, amount]]);
}

function write(token: Address, slot: bigint, value: bigint): LocalCall {
  return ["anvil_setStorageAt", token, `0x${uintWord(slot)}`, `0x${uintWord(value)}`];
}
