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
/** Who may blacklist: FiatToken has a role for it, its look-alikes leave it to the owner. */
const blacklisterSelectors = [selector("blacklister()"), selector("owner()")];

/** The treasury's whole tokens: more than all USDC in existence, and less than FiatToken's 255 bits. */
const treasuryTokens = 10n ** 12n;

/**
 * Brings the test payers into their states on a token that the harness has not made: the real one of a forked chain.
 * Balances are written, as no account can mint. Gives whether the token knows a blacklist; where it does not, the
 * test payer `blacklisted` is a payer like any other.
 *
 * @throws {KitError} when it is not the token it should be, or its balances cannot be written
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
    // What strangers have sent to this published address would be in every sum of a test.
    [harnessAccounts.recipient.address, 0n],
    [harnessAccounts.treasury.address, treasuryTokens * whole],
  ];
  await writeBalances(rpc, network, asset, balances);
  await writeApprovals(rpc, asset.address);
  // Last: FiatToken keeps both in one word, and a balance that is written takes the mark away.
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
  // The node reads the balances one by one when it writes them, each from far away; now it reads them all at once.
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

/** Blacklists an account: writes what the blacklister's call would change in storage. Gives whether that worked. */
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

/** The first word that a view function gives; undefined when it reverts or gives less. */
async function read(rpc: LocalRpc, to: Address, data: Hex): Promise<Hex | undefined> {
  const answer = await callOrRevert(rpc, { to, data });
  const word = answer === undefined ? undefined : wordAt(answer, 0);
  return word === undefined ? undefined : `0x${word}`;
}

/** The result of a call; undefined if it reverts. */
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
