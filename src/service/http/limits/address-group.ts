import { isIPv4, isIPv6 } from "node:net";

/**
 * The name under which requests from an address are counted together: the address itself, and for IPv6 its /64, of
 * which every host has a whole one to choose from. Text that is not an address, which a trusted proxy may pass on, is
 * "unknown".
 */
export function addressGroup(address: string | undefined): string {
  if (address === undefined) return "unknown";
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return "unknown";
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;

  const [start = "", rest] = address.replace(/%.*$/, "").split("::");
  const head = words(start);
  const tail = rest === undefined ? [] : words(rest);
  const zeros = Array<number>(Math.max(0, 8 - head.length - tail.length)).fill(0);
  const prefix = [...head, ...zeros, ...tail].slice(0, 4);
  return `${prefix.map((word) => word.toString(16)).join(":")}::/64`;
}

/** The 16-bit words of a part of an IPv6 address; one written as IPv4 stands for two. */
function words(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((word) => (word.includes(".") ? [0, 0] : [Number.parseInt(word, 16)]));
}
