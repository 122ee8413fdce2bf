import { sameAddress } from "./hex.ts";
import type { Asset, Network } from "./networks.ts";

/** The units to show a token's amounts in, such as `USDC` and 6. */
export type TokenUnits = { symbol: string; decimals: number };

/** The units of a token. A token without a known symbol is shown with its EIP-712 name. */
export function unitsOf({ symbol, name, decimals }: Pick<Asset, "symbol" | "name" | "decimals">): TokenUnits {
  // Circle's EIP-712 name is “USD Coin” on mainnets and “USDC” elsewhere; people call both USDC.
  return { symbol: symbol ?? (name === "USD Coin" ? "USDC" : name), decimals };
}

/** An amount in whole tokens: 10000 with 6 decimals is `0.01`. */
export function formatUnits(amount: bigint | string, decimals: number): string {
  const digits = `${amount}`.padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

/** An amount with its symbol: `1,234.01 USDC`. For an unknown token, in its smallest unit. */
export function formatAmount(amount: bigint | string, units: TokenUnits | null | undefined): string {
  if (!units) return `${formatCount(amount)} units`;
  const [whole = "", fraction] = formatUnits(amount, units.decimals).split(".");
  return `${formatCount(whole)}${fraction === undefined ? "" : `.${fraction}`} ${units.symbol}`;
}

/** An amount for messages: in whole tokens, then in the smallest unit. Placeholders of expected responses stay. */
export function formatBoth(amount: bigint | string, units: TokenUnits | null | undefined): string {
  // Too long to be a real amount; show it raw.
  if (!units || `${amount}`.length > 30) return `${amount} of the asset's smallest unit`;
  return `${typeof amount === "bigint" ? formatAmount(amount, units) : "<text>"} (${amount})`;
}

/** The decimals of ether, often assumed for every token. */
const etherDecimals = 18;

/** More whole tokens than a single payment is likely to ask for. */
const unlikelyTokens = 1_000_000n;

/** The amount that was probably meant if it was counted with 18 decimals; otherwise undefined. */
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

/** Converts `0.01` to the smallest unit; undefined if it is not an amount, or has more decimals than the token. */
export function parseAmount(text: string, decimals: number): string | undefined {
  const [, whole = "", fraction = ""] = /^(\d*)(?:[.](\d*))?$/.exec(text.trim()) ?? [];
  const digits = fraction.replace(/0+$/, "");
  if (whole + fraction === "" || digits.length > decimals) return undefined;
  return `${whole}${digits.padEnd(decimals, "0")}`.replace(/^0+(?=\d)/, "") || "0";
}

/** The accepted tokens on each network besides its own USDC, in the configured order. */
export type KnownTokens = Readonly<Record<string, readonly Asset[]>>;

/** The tokens of the given networks. */
export function tokensOf(networks: readonly { name: string; assets: readonly Asset[] }[]): KnownTokens {
  return Object.fromEntries(networks.map(({ name, assets }) => [name, assets]));
}

/** The token with this address; undefined if it is unknown on the network. */
export function knownToken(
  network: Pick<Network, "name" | "usdc"> | undefined,
  address: string,
  tokens: KnownTokens = {},
): Asset | undefined {
  if (network === undefined) return undefined;
  const all = [...(Object.hasOwn(tokens, network.name) ? (tokens[network.name] ?? []) : []), network.usdc];
  return all.find((token) => sameAddress(token.address, address));
}

/** The units of a payment's token; null if the token is unknown, or there is no payment. */
export function unitsOfPayment(
  request: { knownNetwork: Network; requirements: { asset: string } } | undefined,
  tokens?: KnownTokens,
): TokenUnits | null {
  const token = request && knownToken(request.knownNetwork, request.requirements.asset, tokens);
  return token === undefined ? null : unitsOf(token);
}

/** An amount in wei, in the network's native coin, with as many digits as a person needs: `0.00123 ETH`. */
export function formatCoins(wei: bigint, { nativeCoin }: Pick<Network, "nativeCoin">): string {
  return `${formatDecimals(wei, 18)} ${nativeCoin}`;
}

/** Wei per gas, in gwei: `0.0123 gwei`. */
export function formatGwei(weiPerGas: bigint): string {
  return `${formatDecimals(weiPerGas, 9)} gwei`;
}

/** No 256-bit number has more digits. */
const mostDigits = 78;

/** A whole number with commas: `3,497,198`. If it is too long for an amount, it is shown raw: commas take quadratic time. */
export function formatCount(value: bigint | number | string): string {
  const digits = value.toString();
  return digits.length > mostDigits ? digits : digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Seconds in the largest unit that divides them: `2 days`. */
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

/** Keeps three significant decimals. Truncates instead of rounding, so it never shows more than there is. */
function formatDecimals(value: bigint, decimals: number): string {
  const digits = value.toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, -decimals);
  const fraction = /^0*[1-9]?\d{0,2}/.exec(digits.slice(-decimals))?.[0] ?? "";
  const kept = (whole === "0" ? fraction : fraction.slice(0, 3)).replace(/0+$/, "");
  return kept === "" ? formatCount(whole) : `${formatCount(whole)}.${kept}`;
}
