import { x402FacilitatorAbi } from "../contracts/x402Facilitator.ts";
import { type Hex, isBytes, wordAt } from "../protocol/hex.ts";
import { isObject } from "../util/json.ts";
import type { RpcError } from "./rpc/rpc.ts";
import { selector } from "./views.ts";

export type Revert =
  /** `Error(string)`, as USDC reverts. */
  | { kind: "error"; message: string }
  /** `Panic(uint256)`. */
  | { kind: "panic"; code: bigint }
  /** A custom error of the facilitator contract, or of the OpenZeppelin code in it. */
  | { kind: "custom"; name: string; args: readonly unknown[] }
  /** Anything else, including empty data. */
  | { kind: "unknown"; data: Hex };

type Decoder = (parameters: Hex) => Revert | undefined;

const decoders: ReadonlyMap<string, Decoder> = new Map<string, Decoder>([
  ...x402FacilitatorAbi
    .filter((item) => item.type === "error")
    .map(({ name, inputs }): [string, Decoder] => {
      const types: readonly string[] = inputs.map(({ type }) => type);
      return [
        selector(`${name}(${types.join(",")})`),
        (parameters) => {
          const args = decodeParameters(types, parameters);
          return args && { kind: "custom", name, args };
        },
      ];
    }),
  [
    selector("Error(string)"),
    (parameters) => {
      const [message] = decodeParameters(["string"], parameters) ?? [];
      return typeof message === "string" ? { kind: "error", message } : undefined;
    },
  ],
  [
    selector("Panic(uint256)"),
    (parameters) => {
      const [code] = decodeParameters(["uint256"], parameters) ?? [];
      return typeof code === "bigint" ? { kind: "panic", code } : undefined;
    },
  ],
]);

/** Decodes revert data with the contract's ABI. Never throws: unreadable data is `unknown`. */
export function decodeRevert(data: Hex): Revert {
  const decode = decoders.get(data.slice(0, 10).toLowerCase());
  return decode?.(`0x${data.slice(10)}`) ?? { kind: "unknown", data };
}

/** Describes a revert in a few words, for the organization whose payment it stopped. */
export function describeRevert(revert: Revert): string {
  switch (revert.kind) {
    case "error":
      return revert.message;
    case "custom":
      return revert.name;
    case "panic":
      return `panic ${revert.code}`;
    case "unknown":
      return "no reason given";
  }
}

/** geth, reth, erigon, anvil and other newer nodes: always means "execution reverted". */
const executionReverted = 3;

/** Codes that other nodes use for reverts among many other errors; a revert only if there is revert data. */
const ambiguousCodes: ReadonlySet<number | undefined> = new Set([
  -32000, // Nethermind, Besu, Ganache; geth before 1.9.15
  -32015, // OpenEthereum and its successors
  -32603, // Hardhat
]);

/**
 * Returns the revert data of an `eth_call` error; undefined unless it is certain that the execution reverted, as
 * opposed to a failing node. Uses only the code and data, never the message.
 */
export function readRevertData({ code, data }: RpcError): Hex | undefined {
  if (code === executionReverted) return findData(data) ?? "0x";
  return ambiguousCodes.has(code) ? findData(data) : undefined;
}

/** Finds the bytes: plain, after OpenEthereum's "Reverted " prefix, or nested in objects. */
function findData(data: unknown, depth = 0): Hex | undefined {
  if (typeof data === "string") {
    const bytes = data.startsWith("Reverted ") ? data.slice("Reverted ".length) : data;
    return isBytes(bytes) ? bytes : undefined;
  }
  if (!isObject(data) || depth > 2) return undefined;
  const { data: inner, result, originalError } = data;
  return findData(inner, depth + 1) ?? findData(result, depth + 1) ?? findData(originalError, depth + 1);
}

/**
 * Decodes ABI-encoded parameters of elementary types, which is all that the contract's errors and events carry:
 * integers as bigint, `bool`, `string`, and everything else (addresses, bytes) as hex. viem's decoder does more, but
 * takes longer to load than the service may take to start.
 *
 * `string` and `bytes` may be cut short: the contract truncates a token's reason to MAX_REASON_LENGTH bytes.
 *
 * @returns undefined when the data is too short, or a type is not supported
 */
export function decodeParameters(types: readonly string[], data: Hex): readonly unknown[] | undefined {
  const values: unknown[] = [];
  for (const [index, type] of types.entries()) {
    const word = wordAt(data, index);
    const value = word === undefined ? undefined : decodeParameter(type, word, data);
    if (value === undefined) return undefined;
    values.push(value);
  }
  return values;
}

function decodeParameter(type: string, word: string, data: Hex): unknown {
  if (type === "string" || type === "bytes") {
    const digits = tailAt(data, word);
    if (digits === undefined) return undefined;
    return type === "bytes" ? `0x${digits}` : Buffer.from(digits, "hex").toString();
  }
  if (/^uint\d+$/.test(type)) return BigInt(`0x${word}`);
  if (/^int\d+$/.test(type)) return BigInt.asIntN(256, BigInt(`0x${word}`));
  if (type === "bool") return BigInt(`0x${word}`) !== 0n;
  if (type === "address") return `0x${word.slice(24)}`;
  const size = /^bytes(\d+)$/.exec(type)?.[1];
  return size && `0x${word.slice(0, Number(size) * 2)}`;
}

/** Returns the hex digits of the bytes at an offset, which follow their length. */
function tailAt(data: Hex, offsetWord: string): string | undefined {
  const start = digitsOf(offsetWord);
  const length = digitsOf(data.slice(2 + start, 2 + start + 64));
  const begin = 2 + start + 64;
  return data.length < begin ? undefined : data.slice(begin, begin + length);
}

/** Converts a number of bytes to a number of hex digits; a bogus huge number ends up beyond any real data. */
function digitsOf(word: string): number {
  return Number(BigInt(`0x${word || "0"}`)) * 2;
}
