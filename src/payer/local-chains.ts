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
 * The tokens besides USDC on every local chain, at the same addresses, for Permit2 payments. Each address is the last
 * 20 bytes of keccak256 of `x402-facilitator-kit harness: NAME token`.
 */
export const localTokens = {
  /** A plain ERC-20 token. */
  plain: token("0x572Bd22A8Dc6FB40EF630104bF53064f86C3fC0f", "Plain Token", "PLAIN"),
  /** Keeps a fee of 1% of each transfer. */
  fee: token("0xE2efc19C03c7F7AF62b730651016146afEb99e03", "Fee Token", "FEE"),
  /** Like USDT on Ethereum: transfers and approvals return nothing, and an approval must be reset to 0 before a new one. */
  usdt: token("0x927Db95c78009e0331175914275E3CBc6ca3AbFe", "Tether USD", "USDT"),
  /** Supports permits (EIP-2612), so payers can approve with a signature. */
  permit: token("0x9BC4724F3079b6Fec9bb9bab428fF1755d946D7F", "Permit Token", "PERMIT", "1"),
} as const satisfies Record<string, Asset>;

export type LocalTokenName = keyof typeof localTokens;

export const localTokenNames = Object.keys(localTokens) as LocalTokenName[];

/** The local tokens on a chain, by name. */
export type LocalTokens = Readonly<Partial<Record<LocalTokenName, Asset>>>;

/** The name of the local token at this address, in any case; undefined for any other token. */
export function nameOfLocalToken(address: string): LocalTokenName | undefined {
  return localTokenNames.find((name) => sameAddress(localTokens[name].address, address as Address));
}

/** The tokens that keep a transfer fee, so payments with them are refused. */
const keepingFees: readonly LocalTokenName[] = ["fee"];

export function keepsFee(address: string): boolean {
  const name = nameOfLocalToken(address);
  return name !== undefined && keepingFees.includes(name);
}

/**
 * Finds a token of a local network by its name; without a name, returns the network's own asset.
 *
 * @throws {KitError} if there is no token with that name
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

/** Addresses of the harness's own accounts. Without the keys, which web pages do not need. */
export const harnessAddresses = {
  operator: "0x750bAd95cdbC92De8024b090caE68D6202FE5b74",
  admin: "0xd3dCBA5401554200d4AAe2635B94f4fdb45374Fd",
  recipient: "0xFf85c7DD609eEF8C98199F798B1D6227A3426520",
  authorizer: "0xFf59497f1Ed293Bbcf4977D8BDB81e4A878498b4",
} as const satisfies Record<string, Address>;

/**
 * The default address of the facilitator contract on local chains: the address at which the public CREATE2 deployer would
 * deploy it with the harness's accounts. A constant, because hashing the code would add 10 ms to start-up; a test checks it.
 */
export const localContracts = {
  mainnet: "0xE09e2221cD864A64554e54D4E43adffb9aa9f8FE",
  testnet: "0xf932d4A09C1A523804700724B54Fc4Ae7B5117e2",
} as const;

/** The sponsor's limits on local chains, in wei: per gift, and per day. */
export const localGifts = { each: 10n ** 16n, daily: 10n ** 18n } as const;

/** The balance of each harness account that sends transactions, in wei: 10,000 coins. */
export const localGasMoney = 10_000n * 10n ** 18n;

/** The maximum fee per gas on local chains, in wei. High, because their coins cost nothing. */
export const localMaxFeePerGas = 1_000_000_000_000n;

/**
 * The tip that Anvil suggests until blocks show another one, in wei per gas. Clients sign it, although the suggestion may be
 * lower a block later.
 */
export const localTip = 1_000_000_000;

/** The options with which a facilitator on local chains supports every payment method. */
export const localTerms = {
  gasSponsoring: gasSponsorings,
  walletFactories: [create2Deployer],
} as const satisfies Partial<ServedNetwork>;
