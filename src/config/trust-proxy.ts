import { isIP } from "node:net";
import type { TrustProxy } from "./serve-config.ts";
import { InvalidValue, quote, readList, readWholeNumber } from "./values.ts";

/** Names that Fastify knows for 127.0.0.0/8, 169.254.0.0/16, and the private networks. */
const namedNetworks: readonly string[] = ["loopback", "linklocal", "uniquelocal"];

/** Reads whose `X-Forwarded-For` is believed. */
export function readTrustProxy(text: string): TrustProxy {
  if (text === "false") return false;
  if (text === "true") {
    throw new InvalidValue("cannot be true: then every caller could choose the address it is limited by");
  }
  return /^\d+$/.test(text) ? readWholeNumber(1, 10)(text) : readList("address", readProxy)(text);
}

function readProxy(text: string): string {
  const [address = "", prefix, ...more] = text.split("/");
  const version = isIP(address);
  const bits = version === 4 ? 32 : 128;
  const isNetwork =
    version !== 0 &&
    more.length === 0 &&
    (prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits));
  if (isNetwork || namedNetworks.includes(text)) return text;
  throw new InvalidValue(`${quote(text)} is neither an IP address nor a network`);
}
