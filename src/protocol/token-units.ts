import { sameAddress } from "./hex.ts";
import type { Asset, Network } from "./networks.ts";

/** How amounts of a token are shown: with its symbol and decimals, such as `USDC` and 6. */
export type TokenUnits = { symbol: string; decimals: number };

/** The units of a token. A token of which no symbol is known goes by the name that its payers sign. */
export function unitsOf({ symbol, name, decimals }: Pick<Asset, "symbol" | "name" | "decimals">): TokenUnits {
  // Circle signs as “USD Coin” on the mainnets and as “USDC” elsewhere; people say USDC of both.
  return { symbol: symbol ?? (name === "USD Coin" ? "USDC" : name), decimals };
}

/** An amount in whole tokens: of 10000 with 6 decimals, `0.01`. */
export function formatUnits(amount: bigint | string, decimals: number): string {
  const digits = `${amount}`.padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

/** An amount with its symbol: `1,234.01 USDC`. Of a token that is not known, in its smallest unit. */
export function formatAmount(amount: bigint | string, units: TokenUnits | null | undefined): string {
  if (!units) return `${formatCount(amount)} units`;
  const [whole = "", fraction] = formatUnits(amount, units.decimals).split(".");
  return `${formatCount(whole)}${fraction === undefined ? "" : `.${fraction}`} ${units.symbol}`;
}

/**
 * An amount as messages show it: in whole tokens and, in brackets, in the smallest unit. A placeholder of expected answers
 * stays one.
 */
export function formatBoth(amount: bigint | string, units: TokenUnits | null | undefined): string {
  // What has more digits is nobody's amount.
  if (!units || `${amount}`.length > 30) return `${amount} of the asset's smallest unit`;
  return `${typeof amount === "bigint" ? formatAmount(amount, units) : "<text>"} (${amount})`;
}

/** The decimals of ether, which are often taken for those of every token. */
const etherDecimals = 18;

/** Whole tokens that no single payment is likely to ask for. */
const unlikelyTokens = 1_000_000n;

/** The amount that was probably meant where one was counted with 18 decimals; undefined for any other. */
export function countedAsEther(amount: bigint, { decimals }: TokenUnits): bigint | undefined {
  const excess = etherDecimals - decimals;
  const most = unlikelyTokens * 10n ** BigInt(decimals);
  const meant = amount / 10n ** BigInt(Math.max(excess, 0));
  return excess > 0 && amount >= most && meant < most ? meant : undefined;
}

/** One whole token in its smallest unit: `1 USDC is 1000000`. */
export function describeOne({ symbol, decimals }: TokenUnits): string {
  return `1 ${symbol} is 1${"0".repeat(decimals)}`;
}

/** Converts `0.01` to the smallest unit; undefined where it is no amount, or has more digits than the token. */
export function parseAmount(text: string, decimals: number): string | undefined {
  const [, whole = "", fraction = ""] = /^(\d*)(?:[.](\d*))?$/.exec(text.trim()) ?? [];
  const digits = fraction.replace(/0+$/, "");
  if (whole + fraction === "" || digits.length > decimals) return undefined;
  return `${whole}${digits.padEnd(decimals, "0")}`.replace(/^0+(?=\d)/, "") || "0";
}

/** The tokens that a facilitator takes on each network, besides the networks' own; those first that were configured. */
export type KnownTokens = Readonly<Record<string, readonly Asset[]>>;

/** The tokens of networks that have them. */
export function tokensOf(networks: readonly { name: string; assets: readonly Asset[] }[]): KnownTokens {
  return Object.fromEntries(networks.map(({ name, assets }) => [name, assets]));
}

/** The token with this address; undefined where the network has none that is known. */
export function knownToken(
  network: Pick<Network, "name" | "usdc"> | undefined,
  address: string,
  tokens: KnownTokens = {},
): Asset | undefined {
  if (network === undefined) return undefined;
  const all = [...(Object.hasOwn(tokens, network.name) ? (tokens[network.name] ?? []) : []), network.usdc];
  return all.find((token) => sameAddress(token.address, address));
}

/** How the amounts of a payment are shown; null if its token is unknown, or there is no payment. */
export function unitsOfPayment(
  request: { knownNetwork: Network; requirements: { asset: string } } | undefined,
  tokens?: KnownTokens,
): TokenUnits | null {
  const token = request && knownToken(request.knownNetwork, request.requirements.asset, tokens);
  return token === undefined ? null : unitsOf(token);
}

/** An amount of a network's native coin, given in wei, with as many digits as a person needs: `0.00123 ETH`. */
export function formatCoins(wei: bigint, { nativeCoin }: Pick<Network, "nativeCoin">): string {
  return `${formatDecimals(wei, 18)} ${nativeCoin}`;
}

/** Wei per gas, in gwei: `0.0123 gwei`. */
export function formatGwei(weiPerGas: bigint): string {
  return `${formatDecimals(weiPerGas, 9)} gwei`;
}

/** No number of 256 bits has more digits. */
const mostDigits = 78;

/** A whole number with commas: `3,497,198`. One too long for an amount is shown raw: commas take quadratic time. */
export function formatCount(value: bigint | number | string): string {
  const digits = value.toString();
  return digits.length > mostDigits ? digits : digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Seconds in the largest unit that leaves no rest: `2 days`. */
export function formatSeconds(seconds: number): string {
  for (const [size, unit] of [
    [86_400, "day"],
    [3_600, "hour"],
    [60, "minute"],
  ] as const) {
    if (seconds > 0 && seconds % size === 0) return plural(seconds / size, unit);
  }
  return plural(seconds, "second");
}

export function plural(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Keeps three digits that are not zero behind the point, cut and not rounded: never more than there is. */
function formatDecimals(value: bigint, decimals: number): string {
  const digits = value.toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, -decimals);
  const fraction = /^0*[1-9]?\d{0,2}/.exec(digits.slice(-decimals))?.[0] ?? "";
  const kept = (whole === "0" ? fraction : fraction.slice(0, 3)).replace(/0+$/, "");
  return kept === "" ? formatCount(whole) : `${formatCount(whole)}.${kept}`;
}
