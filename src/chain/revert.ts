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
  /** A custom error of the facilitator contract (or of OpenZeppelin inside it). */
  | { kind: "custom"; name: string; args: readonly unknown[] }
  /** Anything else, empty data included. */
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

/** Reads revert data against the contract's ABI. Never throws: what cannot be read is `unknown`. */
export function decodeRevert(data: Hex): Revert {
  const decode = decoders.get(data.slice(0, 10).toLowerCase());
  return decode?.(`0x${data.slice(10)}`) ?? { kind: "unknown", data };
}

/** A revert in a few words, for the organization whose payment it stopped. */
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

/** geth, reth, erigon, anvil and newer others: "execution reverted", and nothing else. */
const executionReverted = 3;

/** Codes under which others report reverts, among much else: a revert only together with revert data. */
const ambiguousCodes: ReadonlySet<number | undefined> = new Set([
  -32000, // Nethermind, Besu, Ganache; geth before 1.9.15
  -32015, // OpenEthereum and those after it
  -32603, // Hardhat
]);

/**
 * The revert data in an error to `eth_call`; undefined when it is not certain that the execution reverted, as
 * opposed to a node in trouble. Looks at code and data alone, never at the message.
 */
export function readRevertData({ code, data }: RpcError): Hex | undefined {
  if (code === executionReverted) return findData(data) ?? "0x";
  return ambiguousCodes.has(code) ? findData(data) : undefined;
}

/** Plain, after the word that OpenEthereum puts before it, or inside of objects. */
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
 * Decodes ABI-encoded parameters of elementary types, which is what errors and events of the contract carry:
 * integers as bigint, `bool`, `string`, and everything else (addresses, bytes) as hex. viem's decoder does more,
 * but loading it takes longer than starting the service may.
 *
 * `string` and `bytes` may end early: the contract cuts a token's reason after MAX_REASON_LENGTH bytes.
 *
 * @returns undefined when the data is too short, or a type is none of these
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

/** The digits of bytes that stand at an offset, behind their length. */
function tailAt(data: Hex, offsetWord: string): string | undefined {
  const start = digitsOf(offsetWord);
  const length = digitsOf(data.slice(2 + start, 2 + start + 64));
  const begin = 2 + start + 64;
  return data.length < begin ? undefined : data.slice(begin, begin + length);
}

/** A number of bytes as the number of their digits; beyond any real data when it is too large to be true. */
function digitsOf(word: string): number {
  return Number(BigInt(`0x${word || "0"}`)) * 2;
}
