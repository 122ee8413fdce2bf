import type { Network } from "../../protocol/networks.ts";

/** An amount of a network's native coin, given in wei, with as many digits as a person needs: `0.00123 ETH`. */
export function formatCoins(wei: bigint, { nativeCoin }: Pick<Network, "nativeCoin">): string {
  return `${formatDecimals(wei, 18)} ${nativeCoin}`;
}

/** Wei per gas, in gwei: `0.0123 gwei`. */
export function formatGwei(weiPerGas: bigint): string {
  return `${formatDecimals(weiPerGas, 9)} gwei`;
}

/** A whole number with commas: `3,497,198`. */
export function formatCount(value: bigint | number): string {
  return value.toString().replace(/\B(?=(\d{3})+$)/g, ",");
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
  return kept === "" ? formatCount(BigInt(whole)) : `${formatCount(BigInt(whole))}.${kept}`;
}
