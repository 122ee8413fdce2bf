import { isIP } from "node:net";
import { amountForm, readAmount, smallestUnit } from "../payer/terms.ts";
import { builderCodePattern } from "../protocol/builder-code.ts";
import { type Address, type Hex, isBytes32, readAddress as parseAddress } from "../protocol/hex.ts";
import {
  builtInNetworks,
  type Network,
  type NetworkName,
  type NetworkRegistry,
} from "../protocol/networks.ts";
import type { CorsOrigins } from "../protocol/routes.ts";
import { plural, type TokenUnits } from "../protocol/token-units.ts";
import { parseUint256 } from "../protocol/wire-values.ts";
import type { ConfigurationProblem } from "../util/errors.ts";
import { isLoopbackUrl } from "../util/loopback.ts";
import { quote } from "../util/text.ts";

/*
 * The readers of values: the only place where text from a variable or a command line becomes a value. Each takes a
 * trimmed, non-empty text, and throws {@link InvalidValue} if it is invalid. Messages continue a sentence that begins
 * with the name of the variable or option. They never repeat a text that may be a secret, whichever variable it is in:
 * keys do get pasted into the wrong line.
 */

/** The problem with a value. Its message contains no secret. */
export class InvalidValue extends Error {
  override readonly name = "InvalidValue";
}

/** Reads a value; returns an {@link InvalidValue} as a problem instead of throwing it. */
export function attempt<T>(read: () => T): { value: T } | { problem: string } {
  try {
    return { value: read() };
  } catch (error) {
    if (error instanceof InvalidValue) return { problem: error.message };
    throw error;
  }
}

/** Reads a part of a value; prefixes its problem with `where`. */
export function readPart<T>(where: string, read: () => T): T {
  const part = attempt(read);
  if ("value" in part) return part.value;
  throw new InvalidValue(`${where}${part.problem}`);
}

/** Formats an index, which counts from 0, as 1st, 2nd, 3rd, … */
export function ordinal(index: number): string {
  const number = index + 1;
  const ending =
    number % 100 > 10 && number % 100 < 14 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
  return `${number}${ending}`;
}

/** @param most at most 999,999,999,999,999, because longer texts are refused */
export function readWholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= least && value <= most)) {
      throw new InvalidValue(`${quote(text)} is not a whole number from ${least} to ${most}`);
    }
    return value;
  };
}

export function readOneOf<const T extends string>(words: readonly T[]): (text: string) => T {
  return (text) => {
    const word = words.find((known) => known === text);
    if (word === undefined) throw new InvalidValue(`${quote(text)} is not one of ${words.join(", ")}`);
    return word;
  };
}

/** The log levels, from least to most, and `silent` for nothing. */
export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;

export type LogLevel = (typeof logLevels)[number];

export function readSwitch(text: string): boolean {
  return readOneOf(["true", "false"])(text) === "true";
}

export function readBuilderCode(text: string): string {
  if (!builderCodePattern.test(text)) {
    throw new InvalidValue(`${quote(text)} is not 1 to 32 lower-case letters, digits and underscores`);
  }
  return text;
}

/** Reads an address to listen on. */
export function readHost(text: string): string {
  if (isIP(text) === 0 && text !== "localhost") throw new InvalidValue(`${quote(text)} is not an IP address`);
  return text;
}

const hostNamePattern = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9])?)*$/i;

/** Returns true if a text is a valid host name, such as that of a container. */
export function isHostName(text: string): boolean {
  return hostNamePattern.test(text);
}

export function readHostName(text: string): string {
  if (!isHostName(text)) throw new InvalidValue(`${quote(text)} is not the name of a host`);
  return text;
}

const gweiPattern = /^(\d{1,6})(?:\.(\d{1,9}))?$/;

/** Reads a number of gwei with up to nine decimals; returns wei. */
export function readGwei(text: string): bigint {
  const [, whole = "", fraction = ""] = gweiPattern.exec(text) ?? [];
  const wei = whole === "" ? 0n : BigInt(whole + fraction.padEnd(9, "0"));
  if (wei === 0n)
    throw new InvalidValue(`${quote(text)} is not a number of gwei above 0 and below 1,000,000`);
  return wei;
}

/** Reads an amount of a network's native coin with up to 18 decimals; returns wei. */
export function readCoins(text: string): bigint {
  const [, whole = "", fraction = ""] = /^(\d{1,9})(?:\.(\d{1,18}))?$/.exec(text) ?? [];
  const wei = whole === "" ? 0n : BigInt(whole + fraction.padEnd(18, "0"));
  if (wei === 0n) throw new InvalidValue(`${quote(text)} is not a number of coins above 0, such as 0.01`);
  return wei;
}

/** Reads an amount like {@link readCoins}, or null for `none`. */
export function readCoinsOrNone(text: string): bigint | null {
  return text === "none" ? null : readCoins(text);
}

/** Reads an address; returns it with its checksum (EIP-55). The checksum of a mixed-case text must be correct. */
export function readAddress(text: string): Address {
  const { address, problem } = parseAddress(text);
  if (problem !== undefined) throw new InvalidValue(problem);
  return address;
}

/** Reads a list of facilitator contracts: the offered one first, then former ones. */
export const readContractList = readList("address", readAddress, (address) => address.toLowerCase());

/** The order of secp256k1; private keys are below it. */
const secp256k1Order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** Reads a private key, with or without 0x; returns it in lower case with 0x. */
export function readPrivateKey(text: string): Hex {
  const key = `0x${text.replace(/^0x/, "").toLowerCase()}`;
  if (!isBytes32(key)) throw new InvalidValue(`is not a private key${describeNoKey(text)}`);
  if (BigInt(key) === 0n || BigInt(key) >= secp256k1Order) {
    throw new InvalidValue("is not a private key: not above zero and below the order of secp256k1");
  }
  return key;
}

/** A key, and the only network it is for; undefined if it is for all. */
export type NetworkKey = { network: NetworkName | undefined; key: Hex };

/** Reads keys separated by commas: `0x…` for all networks, `base=0x…` for one. No message shows any part of a key. */
export function readNetworkKeys(
  text: string,
  known: NetworkRegistry = builtInNetworks,
): readonly [NetworkKey, ...NetworkKey[]] {
  const read = (entry: string): NetworkKey => {
    const at = entry.indexOf("=");
    const key = readPrivateKey(entry.slice(at + 1).trim());
    if (at === -1) return { network: undefined, key };
    const name = entry.slice(0, at).trim();
    const network = (known.named(name) ?? known.find(name, 2))?.name;
    if (network === undefined)
      throw new InvalidValue(`is not for a known network: ${known.names.join(", ")}`);
    return { network, key };
  };
  return readList("key", read, ({ network, key }) => `${network} ${key}`)(text);
}

/** Describes why a text is not a private key, without showing any part of it. */
function describeNoKey(text: string): string {
  if (/["'`]/.test(text)) return ": it has quotes around it, leave them out";
  if (/\s/.test(text)) return ": it has a space in it, leave it out";
  const digits = /^(?:0x)?([0-9a-f]*)$/i.exec(text)?.[1]?.length;
  if (digits === undefined) return ": write 0x and 64 hexadecimal digits";
  return `: it has ${digits} hexadecimal digits${digits === 40 ? ", as an address has" : ""}, and a key has 64`;
}

export function readHttpUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    const webSocket = /^wss?:/i.test(text) ? "; WebSockets are not supported" : "";
    throw new InvalidValue(`is not a URL that begins with https:// or http://${webSocket}`);
  }
  return text;
}

/** Reads the address of a server, as a URL without a path. */
export function readOrigin(text: string): string {
  const { origin, href } = new URL(readHttpUrl(text));
  if (href === `${origin}/`) return origin;
  throw new InvalidValue(`has a path or more: give ${origin}`);
}

/** Reads distinct values separated by commas. `what` names one in messages, such as "key"; `keyOf` tells them apart. */
export function readList<T>(
  what: string,
  read: (text: string) => T,
  keyOf: (value: T) => unknown = (value) => value,
): (text: string) => readonly [T, ...T[]] {
  return (text) => {
    const values = text.split(",").map((part, index, { length }): T => {
      const where = length === 1 ? "" : `the ${ordinal(index)} ${what} `;
      if (part.trim() === "") throw new InvalidValue(`the ${ordinal(index)} ${what} is empty`);
      return readPart(where, () => read(part.trim()));
    });
    const keys = values.map(keyOf);
    for (const [index, key] of keys.entries()) {
      const first = keys.indexOf(key);
      if (first < index)
        throw new InvalidValue(`the ${ordinal(index)} ${what} is the same as the ${ordinal(first)}`);
    }
    const [first, ...others] = values;
    if (first === undefined) throw new InvalidValue(`names no ${what}`);
    return [first, ...others];
  };
}

/** Warns of each URL that sends in the clear what an attacker on the network could read or change. */
export function warnOfClearText(
  name: string,
  urls: readonly string[],
  danger: string,
): ConfigurationProblem[] {
  return urls.flatMap((url, index) =>
    /^http:/i.test(url) && !isLoopbackUrl(url)
      ? [
          {
            name,
            problem: `the ${ordinal(index)} URL is http:// to another machine: ${danger}`,
            example: "https://…",
          },
        ]
      : [],
  );
}

export function readNetwork(text: string, known: NetworkRegistry = builtInNetworks): NetworkName {
  return known.find(text, 2)?.name ?? readOneOf(known.names)(text);
}

/** Reads networks separated by commas, each at most once. */
export function readNetworks(text: string, known?: NetworkRegistry): readonly NetworkName[] {
  const names = text.split(",").map((name) => readNetwork(name.trim(), known));
  if (new Set(names).size < names.length) throw new InvalidValue("names a network twice");
  return names;
}

export type ByNetwork<T> = Readonly<Record<string, T>>;

/** Reads parts such as `base=VALUE`, each network at most once. The networks need not be in use. */
export function readByNetwork<T>(
  parts: readonly string[],
  read: (value: string, network: Network) => T,
  known: NetworkRegistry = builtInNetworks,
): ByNetwork<T> {
  const values: Record<string, T> = {};
  for (const part of parts) {
    const [, name = "", value] = /^\s*([^=\s]+)\s*=\s*(.+?)\s*$/s.exec(part) ?? [];
    if (value === undefined) throw new InvalidValue(`${quote(part.trim())} is not of the form NETWORK=VALUE`);
    const network = known.named(readNetwork(name, known));
    if (network === undefined) continue;
    if (values[network.name] !== undefined) throw new InvalidValue(`names ${network.name} twice`);
    values[network.name] = readPart(`${network.name}: `, () => read(value, network));
  }
  return values;
}

/** Reads `base=2,polygon=8`. */
export function readPerNetwork<T>(read: (text: string) => T) {
  return (text: string, known?: NetworkRegistry): ByNetwork<T> => readByNetwork(text.split(","), read, known);
}

/** An amount of a token whose decimals are not known yet; `isUnits` if the text is in the token's smallest unit. */
export type Price = (token: TokenUnits, isUnits: boolean) => bigint;

/** Reads an amount of zero or more: whole tokens (`1`, `0.01`, `$0.01`), or the smallest unit if the command says so. */
export function readPriceOrZero(text: string): Price {
  if (!amountForm.test(text)) throw new InvalidValue(`${quote(text)} is not an amount, such as 0.01 or 1`);
  return (token, isUnits) => readAmount(text, isUnits ? smallestUnit : token);
}

/** Reads an amount above zero. */
export function readPrice(text: string): Price {
  if (!/[1-9]/.test(text)) throw new InvalidValue(`${quote(text)} is not an amount above zero, such as 0.01`);
  return readPriceOrZero(text);
}

/** Reads a limit in smallest units or wei; null for `none`, which removes the limit. */
export function readLimit(text: string): bigint | null {
  if (text === "none") return null;
  const value = parseUint256(text);
  if (value === null) throw new InvalidValue(`${quote(text)} is neither a whole number nor none`);
  return value;
}

/** Reads 32 bytes of hexadecimal: a settlement id or a transaction hash. */
export function readBytes32(text: string): Hex {
  if (!isBytes32(text)) throw new InvalidValue(`${quote(text)} is not 0x and 64 hexadecimal digits`);
  return text;
}

/** Reads an ISO 8601 date, or date and time, in UTC unless it names a zone; returns unix milliseconds. */
export function readMoment(text: string): number {
  const iso = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/.exec(text);
  const time =
    iso === null ? Number.NaN : Date.parse(iso[1] !== undefined && iso[4] === undefined ? `${text}Z` : text);
  if (Number.isNaN(time)) {
    throw new InvalidValue(`${quote(text)} is not a time: 2026-11-20, 2026-11-20T10:00:00Z`);
  }
  return time;
}

const unitsMs = { m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Reads a time span such as 30m, 12h or 90d; returns milliseconds. */
export function readDuration(text: string): number {
  const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  if (count === undefined || (unit !== "m" && unit !== "h" && unit !== "d")) {
    throw new InvalidValue(`${quote(text)} is not a time span: 30m, 12h, 90d`);
  }
  return Number(count) * unitsMs[unit];
}

/** Reads the URL of a facilitator; removes the `/v1` that `up` prints with it. */
export function readFacilitatorUrl(text: string): string {
  return readHttpUrl(text).replace(/(\/v1)?\/*$/, "");
}

/** Reads `*`, or the origins of web pages. */
export function readCorsOrigins(text: string): CorsOrigins {
  if (text === "*") return text;
  return readList("origin", (one) => {
    const origin = URL.parse(one)?.origin;
    if (origin === undefined || origin !== one.replace(/\/$/, "")) {
      throw new InvalidValue(
        `${quote(one)} is not an origin: a scheme and a host, as in https://shop.example`,
      );
    }
    return origin;
  })(text);
}

export function readApiKey(text: string): string {
  if (!/^[\x21-\x7e]+$/.test(text)) throw new InvalidValue("is not an API key: visible ASCII without spaces");
  return text;
}

const shortestPepper = 32;
const fewestDistinctCharacters = 8;

/** Words from examples, tests and templates, in any casing. */
const guessable = /change.?me|example|password|pepper|secret|x402|your.?key|0123456789|abcdefgh/i;

/** Reads the secret that API keys are hashed with; refuses guessable ones. */
export function readPepper(text: string): string {
  if (text.length < shortestPepper) {
    throw new InvalidValue(`has ${plural(text.length, "character")}; it needs ${shortestPepper} or more`);
  }
  if (new Set(text).size < fewestDistinctCharacters) {
    throw new InvalidValue("repeats a few characters; it must be random");
  }
  if (guessable.test(text)) {
    throw new InvalidValue("holds guessable words; it must be random");
  }
  return text;
}

/** Reads a secret like {@link readPepper}, restricted to what an HTTP header can hold. */
export function readBearerToken(text: string): string {
  if (!/^[\x21-\x7e]*$/.test(text)) {
    throw new InvalidValue("holds characters that an Authorization header cannot; use letters and digits");
  }
  return readPepper(text);
}

/** A path that is safe to show, and does not look like a folder with a socket. */
const databaseFile = /^[\w./-]{1,200}\.(?:db|sqlite3?)$/;

/** Reads the location of the database: `sqlite:PATH`, or the URL of a Postgres. */
export function readDatabaseUrl(text: string): string {
  if (text.startsWith("sqlite::memory:")) {
    throw new InvalidValue("is a database in memory, which would forget the payments that are on their way");
  }
  if (text.startsWith("sqlite:")) return text;
  if (databaseFile.test(text)) throw new InvalidValue(`is a path: write sqlite:${text}`);
  if (/^(?:socket:|\.{0,2}\/|unix:)/.test(text)) {
    throw new InvalidValue(
      "is a path; a Postgres at a Unix socket is postgres://USER@/DATABASE?host=/DIRECTORY, and a file sqlite:PATH",
    );
  }
  // With a Unix socket there is no host, and a user without a host is not a valid URL.
  const url = /^postgres(?:ql)?:\/\//.test(text) ? URL.parse(text.replace("@/", "@localhost/")) : null;
  if (url === null) {
    throw new InvalidValue("must begin with sqlite: or be a URL that begins with postgres://");
  }
  // A password with a / or # ends the host early: a part of it would be looked up and printed as the host.
  if (/@/.test(url.pathname + url.search + url.hash)) {
    throw new InvalidValue(
      "has an @ behind its host: in the user and the password, write @ as %40, / as %2F, # as %23 and ? as %3F",
    );
  }
  return text;
}

/** A request limit: `burst` at once, and `perSecond` in the long run. */
export type RequestRate = { readonly perSecond: number; readonly burst: number };

const highestRate = 1_000_000;

/** Reads `PER_SECOND/BURST`. */
export function readRate(text: string): RequestRate {
  const [perSecond = "", burst = "", ...more] = text.split("/").map((part) => part.trim());
  if (burst === "" || more.length > 0) throw new InvalidValue("is not of the form PER_SECOND/BURST");
  const read = readWholeNumber(1, highestRate);
  return { perSecond: read(perSecond), burst: read(burst) };
}

/** The trusted `X-Forwarded-For`: none, the one from this number of proxies, or the one from these addresses. */
export type TrustProxy = false | number | readonly [string, ...string[]];

/** Names that Fastify knows for 127.0.0.0/8, 169.254.0.0/16, and the private networks. */
const namedNetworks: readonly string[] = ["loopback", "linklocal", "uniquelocal"];

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
  if (isNetwork && prefix !== undefined && Number(prefix) === 0) {
    throw new InvalidValue(
      `${text} is every address: then every caller could choose the address it is limited by`,
    );
  }
  if (isNetwork || namedNetworks.includes(text)) return text;
  throw new InvalidValue(`${quote(text)} is neither an IP address nor a network`);
}
