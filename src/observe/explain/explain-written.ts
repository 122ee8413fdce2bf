import { isAddress, isBytes } from "../../protocol/hex.ts";
import { formatNetwork, type Network, type NetworkRegistry } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import { unitsOf } from "../../protocol/token-units.ts";
import { faults, isRecord, parseUint256 } from "../../protocol/wire-values.ts";
import { findSlip, mostTyposOf } from "../../util/text.ts";

/*
 * Explains how to write an unreadable value correctly. Every piece of advice names what was found.
 */

/** A member that cannot be read. */
export type Written = {
  /** Its path. */
  at: string;
  value: unknown;
  /** The problem, as worded by the reader. */
  problem: string;
  version: X402Version;
  /** The sibling members. */
  beside: Readonly<Record<string, unknown>>;
  /** The network of the payment, if it could be read. */
  network: Network | undefined;
};

/** The correct form of the value, and how to get there. */
type Rewritten = { got?: string; expected?: string; fix: string };

/** Finds the correct form of an unreadable member; undefined if its value does not show what was meant. */
export function rewrite(written: Written): Rewritten | undefined {
  const { value, problem, at } = written;
  if (value === undefined) return renamedMember(at, written.version, written.beside);
  if (isRecord(value)) return at.endsWith(".signature") ? joined(value) : undefined;
  if (typeof value === "string" && problem.startsWith(faults.address)) return rewriteAddress(value, written);
  if (problem === faults.digits || problem === faults.decimal) return rewriteNumber(value, at);
  const isText = typeof value === "string" || typeof value === "number";
  return isText && /\.(nonce|signature)$/.test(at) ? rewriteBytes(`${value}`, at) : undefined;
}

/** Version 1's names of members that version 2 renamed. */
const namesOfVersion2: Readonly<Record<string, string>> = { amount: "maxAmountRequired" };

/** Finds a missing member that is present under another name. */
export function renamedMember(
  at: string,
  version: X402Version,
  beside: Written["beside"],
): Rewritten | undefined {
  const name = at.replace(/^.*\./, "");
  const of1 = version === 2 ? namesOfVersion2[name] : undefined;
  if (of1 !== undefined && beside[of1] !== undefined) {
    return { got: of1, expected: name, fix: `Rename ${of1} to ${name}: version 2 calls it so.` };
  }
  if (name === "paymentRequirements" && Array.isArray(beside.accepts)) {
    return {
      got: "accepts",
      expected: "one offer",
      fix: "Send the one of accepts that the payer chose, as paymentRequirements.",
    };
  }
  if (name === "paymentPayload" && typeof beside.paymentHeader === "string") {
    const fix =
      'Decode paymentHeader, JSON.parse(Buffer.from(header, "base64").toString()), and send the object as paymentPayload.';
    return { got: "paymentHeader", expected: "paymentPayload", fix };
  }
  const plain = (text: string) => text.replaceAll(/[_-]/g, "").toLowerCase();
  const other = Object.keys(beside).find((key) => plain(key) === plain(name));
  return other === undefined
    ? undefined
    : { got: other, expected: name, fix: `Write ${name} in place of ${other}.` };
}

/** Separates a value from the quotes, line breaks and spaces around it. */
function wrapping(text: string): { bare: string; around: string } {
  const bare = text.replaceAll(/^[\s"'`]+|[\s"'`]+$/g, "");
  const around = text.replace(bare, "");
  const found = [
    ...(/["'`]/.test(around) ? ["quotes"] : []),
    ...(/[\r\n]/.test(around) ? ["line break"] : []),
    ...(/[^\S\r\n]/.test(around) ? ["space"] : []),
  ];
  return { bare, around: found.join(" and ") };
}

const leaveOut = (around: string) =>
  `Leave out the ${around} around it: an environment file or a template has put that into the value.`;

function rewriteAddress(text: string, { at, network }: Written): Rewritten | undefined {
  const { bare, around } = wrapping(text);
  if (around !== "" && isAddress(bare)) return { expected: bare, fix: leaveOut(around) };
  if (/^0X[0-9a-f]{40}$/i.test(bare)) {
    return { expected: bare.replace("0X", "0x"), fix: "Begin it with 0x: the X of 0X is a capital." };
  }
  if (isAddress(`0x${bare}`)) return { expected: `0x${bare}`, fix: "Begin it with 0x." };
  // The service masks most digits of anything that may be a key.
  if (/^(0x)?[0-9a-f•]{64}$/i.test(bare)) {
    return {
      got: "64 digits, as a private key or a hash has",
      fix: "Write the address of the account, which has 40 digits. If this is a private key, it is no secret any more: move what it holds.",
    };
  }
  if (/^[^\s/@]+\.[a-z]{2,}$/i.test(bare)) {
    return { fix: `Resolve the name ${bare} (ENS) yourself, and write the address: x402 looks no names up.` };
  }
  if (!at.endsWith(".asset") || network === undefined) return undefined;
  const { usdc } = network;
  const names = [unitsOf(usdc).symbol, usdc.name].map((name) => name.toLowerCase());
  return names.includes(bare.toLowerCase())
    ? { expected: usdc.address, fix: `Write the address of the token on ${network.name}, not its name.` }
    : undefined;
}

/** A number in hexadecimal with more characters than this is not taken for an amount or a time. */
const mostDigits = 20;

function rewriteNumber(value: unknown, at: string): Rewritten | undefined {
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value) || value < 0) return undefined;
    return { expected: `"${value}"`, fix: `Send it as a string, "${value}": JSON numbers lose digits.` };
  }
  if (typeof value !== "string" || value.length > 100) return undefined;
  const { bare, around } = wrapping(value);
  if (around !== "" && parseUint256(bare) !== null) return { expected: `"${bare}"`, fix: leaveOut(around) };
  const [what, meant] = digitsIn(bare, at);
  return meant === undefined
    ? undefined
    : { expected: `"${meant}"`, fix: `Write decimal digits alone, "${meant}"; this has ${what}.` };
}

/** Names the non-digits in a text, and returns the digits that it stands for. */
function digitsIn(text: string, at: string): readonly [string, string | undefined] {
  if (/^0x[0-9a-f]+$/i.test(text) && text.length <= mostDigits)
    return ["hexadecimal digits", `${BigInt(text)}`];
  if (/^\d{1,3}([,_']\d{3})+$/.test(text)) return ["separators", text.replaceAll(/\D/g, "")];
  if (/^\d+n$/.test(text)) return ["the n of a bigint", text.slice(0, -1)];
  if (/^0+[1-9]\d*$/.test(text)) return ["leading zeros", text.replace(/^0+/, "")];
  if (/^\d(\.\d+)?e\+?\d{1,2}$/i.test(text)) {
    const number = Number(text);
    return ["an exponent", Number.isSafeInteger(number) ? `${number}` : undefined];
  }
  const isDate = /\.(validAfter|validBefore|deadline)$/.test(at) && /^\d{4}-\d\d-\d\d/.test(text);
  const time = isDate ? Date.parse(text) : Number.NaN;
  return ["a date, not unix seconds", Number.isNaN(time) ? undefined : `${Math.floor(time / 1_000)}`];
}

function rewriteBytes(text: string, at: string): Rewritten | undefined {
  const { bare, around } = wrapping(text);
  if (around !== "" && isBytes(bare)) return { fix: leaveOut(around) };
  if (/^([0-9a-f]{2}){32,}$/i.test(bare)) return { fix: "Begin it with 0x." };
  return at.endsWith(".nonce") && /^\d{1,20}$/.test(bare)
    ? {
        fix: "Take 32 random bytes for each payment, as 0x and 64 digits: these nonces are not counted, as those of transactions are.",
      }
    : undefined;
}

function joined({ r, s, v }: Readonly<Record<string, unknown>>): Rewritten | undefined {
  return r === undefined || s === undefined
    ? undefined
    : {
        expected: "65 bytes as hexadecimal after 0x",
        fix: `Join r, s and v into one string: 0x, 64 digits of r, 64 of s, and ${v === undefined ? "1b or 1c for v" : "2 of v"}.`,
      };
}

/** The network meant by an unknown name or number, as the given version writes it; undefined if none is close. */
export function networkMeant(
  value: unknown,
  version: X402Version,
  networks: NetworkRegistry,
): string | undefined {
  if (typeof value !== "string" && typeof value !== "number") return undefined;
  const text = `${value}`
    .trim()
    .toLowerCase()
    .replaceAll(/[\s_:]+/g, "-");
  const [, id] = /^(?:eip155-)?(\d+)$/.exec(text) ?? [];
  const name = text.replace(/-?mainnet$/, "");
  const slip = findSlip(name, networks.names, mostTyposOf(name));
  const found =
    id === undefined
      ? (networks.find(name, 1) ?? (slip === undefined ? undefined : networks.find(slip, 1)))
      : networks.all.find(({ chainId }) => `${chainId}` === id);
  return found && formatNetwork(found, version);
}
