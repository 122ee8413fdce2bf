import { gasSponsorings, type ServedNetwork } from "../protocol/checks.ts";
import { create2Deployer } from "../protocol/create2.ts";
import { type Address, sameAddress } from "../protocol/hex.ts";
import type { Asset } from "../protocol/networks.ts";
import { KitError } from "../util/errors.ts";

const token = (address: Asset["address"], name: string, symbol: string, version = ""): Asset => ({
  address,
  name,
  symbol,
  version,
  decimals: 6,
  transfers: ["permit2"],
});

/**
 * The tokens besides USDC on every local chain, at the same addresses, for payments by Permit2. Each address is the last
 * twenty bytes of keccak256 of `x402-facilitator-kit harness: NAME token`.
 */
export const localTokens = {
  /** An ERC-20 and nothing else. */
  plain: token("0x572Bd22A8Dc6FB40EF630104bF53064f86C3fC0f", "Plain Token", "PLAIN"),
  /** Keeps a hundredth of each transfer. */
  fee: token("0xE2efc19C03c7F7AF62b730651016146afEb99e03", "Fee Token", "FEE"),
  /** As USDT on Ethereum: transfers and approvals return nothing, and an approval must be taken back before another. */
  usdt: token("0x927Db95c78009e0331175914275E3CBc6ca3AbFe", "Tether USD", "USDT"),
  /** Has permits (EIP-2612), and so can be approved by a signature. */
  permit: token("0x9BC4724F3079b6Fec9bb9bab428fF1755d946D7F", "Permit Token", "PERMIT", "1"),
} as const satisfies Record<string, Asset>;

export type LocalTokenName = keyof typeof localTokens;

export const localTokenNames = Object.keys(localTokens) as LocalTokenName[];

/** Those that a chain has, by their names. */
export type LocalTokens = Readonly<Partial<Record<LocalTokenName, Asset>>>;

/** The name of the one with this address, however that is spelled; undefined of every other token. */
export function nameOfLocalToken(address: string): LocalTokenName | undefined {
  return localTokenNames.find((name) => sameAddress(localTokens[name].address, address as Address));
}

/** Those that keep a part of each transfer, and so cannot be paid with. */
const keepingFees: readonly LocalTokenName[] = ["fee"];

export function keepsFee(address: string): boolean {
  const name = nameOfLocalToken(address);
  return name !== undefined && keepingFees.includes(name);
}

/**
 * A token of a local network by its name; the network's own asset where none is named.
 *
 * @throws {KitError} when it has none of that name
 */
export function tokenNamed(
  { asset, tokens = {} }: { asset: Asset; tokens?: Readonly<Partial<Record<string, Asset>>> | undefined },
  name: string | undefined,
): Asset {
  if (name === undefined) return asset;
  if (Object.hasOwn(tokens, name) && tokens[name] !== undefined) return tokens[name];
  const names = Object.keys(tokens);
  throw new KitError(`There is no token "${name}" here`, {
    hints: [names.length === 0 ? "A fork has its network's alone." : `There is ${names.join(", ")}.`],
  });
}

/** Addresses of the harness's own accounts, without their keys, which pages need not carry. */
export const harnessAddresses = {
  operator: "0x750bAd95cdbC92De8024b090caE68D6202FE5b74",
  admin: "0xd3dCBA5401554200d4AAe2635B94f4fdb45374Fd",
  recipient: "0xFf85c7DD609eEF8C98199F798B1D6227A3426520",
  authorizer: "0xFf59497f1Ed293Bbcf4977D8BDB81e4A878498b4",
} as const satisfies Record<string, Address>;

/**
 * Where the local chains have the facilitator contract by default: where the public CREATE2 deployer would put it with
 * the accounts of the harness. Written down, since hashing the code takes a young process 10 ms; a test compares.
 */
export const localContracts = {
  mainnet: "0xE09e2221cD864A64554e54D4E43adffb9aa9f8FE",
  testnet: "0xf932d4A09C1A523804700724B54Fc4Ae7B5117e2",
} as const;

/** The wei that the sponsor of local chains gives: at once, and on one day. */
export const localGifts = { each: 10n ** 16n, daily: 10n ** 18n } as const;

/** The gas money of each account of the harness that sends transactions, in wei: 10,000 whole coins. */
export const localGasMoney = 10_000n * 10n ** 18n;

/** The most that is paid per gas on local chains, in wei: their coins cost nothing. */
export const localMaxFeePerGas = 1_000_000_000_000n;

/** The tip that Anvil suggests while no block has shown it another, in wei per gas: clients sign it, and it may be lower a block later. */
export const localTip = 1_000_000_000;

/** The tokens that a facilitator of local chains takes besides USDC, so that every payment method can be tried there. */
export const localTerms = {
  gasSponsoring: gasSponsorings,
  walletFactories: [create2Deployer],
} as const satisfies Partial<ServedNetwork>;
