import type { TransactionFields } from "./encode-transaction.ts";
import { type Address, type Hex, isBytes, keccak256 } from "./hex.ts";
import {
  encodeBytes,
  encodeHead,
  encodeList,
  encodeNumber,
  longList,
  mostShort,
  shortBytes,
  shortList,
} from "./rlp.ts";

/*
 * Transactions in RLP, read by hand, and written by `encode-transaction.ts`: a transaction of fifty payments has 15 KB, which viem
 * takes apart and puts together again several times for one signature, whose import takes 150 ms, and which pages with the
 * fixtures need not load.
 */

/** A transaction of another account, as it was signed. For the older types, both fees are the gas price. */
export type ForeignTransaction = TransactionFields & {
  /** In wei. */
  value: bigint;
  raw: Hex;
  hash: Hex;
  digest: Hex;
  /** r, s and v of 27 or 28, whatever they are worth. */
  signature: Hex;
};

/** The longest transaction that is read, in bytes: a call with two arguments has some 180. */
const mostBytes = 1_024;

/**
 * Reads a signed transaction of type 2 (EIP-1559), type 1 (EIP-2930) or the legacy type that calls a contract, has an empty access
 * list, and is encoded as nodes take it: another encoding of the same would have another hash. A legacy one must be for one chain
 * (EIP-155): without that it can be sent on every chain.
 *
 * @returns undefined for anything else
 */
export function readSignedTransaction(raw: unknown): ForeignTransaction | undefined {
  if (!isBytes(raw) || raw.length > 2 + 2 * mostBytes) return undefined;
  const text: Hex = `0x${raw.slice(2).toLowerCase()}`;
  const type = /^0x(0[12])/.exec(text)?.[1] ?? "";
  const isLegacy = type === "";
  const list = readItem(text, 2 + type.length, text.length);
  if (list === undefined || !list.isList || list.end !== text.length) return undefined;
  const items: Item[] = [];
  for (let at = list.start; at < list.end; ) {
    const item = readItem(text, at, list.end);
    if (item === undefined) return undefined;
    items.push(item);
    at = item.end;
  }
  const ending = items.splice(-3);
  const unsigned = text.slice(list.start, items.at(-1)?.end);
  const accessList = isLegacy ? undefined : items.pop();
  const chain = isLegacy ? undefined : items.shift();
  if (!isLegacy && (accessList?.isList !== true || accessList.digits !== "")) return undefined;
  // The gas price of the older types is both what they offer at most and their tip.
  if (type !== "02") items.splice(1, 0, ...items.slice(1, 2));
  if (items.length !== 7 || [...items, ...ending, chain].some((item) => item?.isList)) return undefined;
  const [nonce, tip, fee, gas, , value] = items.map(({ digits }) => readNumber(digits));
  const [v, r, s] = ending.map(({ digits }) => readNumber(digits));
  const to = items[4]?.digits;
  const data = items[6]?.digits;
  if ([nonce, tip, fee, gas, value, v, r, s].includes(undefined) || to?.length !== 40) return undefined;
  const [count = 0n, maxPriorityFeePerGas = 0n, maxFeePerGas = 0n, last = 0n] = [nonce, tip, fee, v];
  // The v of a legacy transaction for one chain is 35 or 36, and twice the chain's id.
  const chainId = isLegacy ? (last - 35n) / 2n : readNumber(chain?.digits ?? "");
  if (chainId === undefined || chainId > mostSafe || count > mostSafe) return undefined;
  const parity = isLegacy ? last - 35n - 2n * chainId : last;
  if ((isLegacy && chainId < 1n) || (parity !== 0n && parity !== 1n)) return undefined;
  const forChain = isLegacy ? `${encodeNumber(chainId)}8080` : "";
  const word = (number: bigint | undefined) => (number ?? 0n).toString(16).padStart(64, "0");
  return {
    chainId: Number(chainId),
    nonce: Number(count),
    maxPriorityFeePerGas,
    maxFeePerGas,
    gas: gas ?? 0n,
    to: `0x${to}`,
    value: value ?? 0n,
    data: `0x${data ?? ""}`,
    raw: text,
    hash: keccak256(text),
    digest: keccak256(`0x${type}${encodeList(unsigned + forChain)}`),
    signature: `0x${word(r)}${word(s)}${parity === 0n ? "1b" : "1c"}`,
  };
}

/** Reads a transaction that an account of ours has signed. */
export function readTransaction(raw: Hex): { txNonce: number; gas: bigint; to: Address; data: Hex } {
  // 0x02, and the list; in it chain id, txNonce, tip, fee, gas limit, to, value, data.
  const items: string[] = [];
  for (let at = locateItem(raw, 4).start; items.length < 8; ) {
    const { start, end } = locateItem(raw, at);
    items.push(raw.slice(start, end));
    at = end;
  }
  const [, txNonce, , , gas, to, , data] = items;
  return {
    txNonce: Number(`0x${txNonce || "0"}`),
    gas: BigInt(`0x${gas || "0"}`),
    to: `0x${to}`,
    data: `0x${data}`,
  };
}

/** The most that a signed transaction may cost, in wei. */
export function mostCost({ raw, maxFeePerGas }: { raw: Hex; maxFeePerGas: bigint }): bigint {
  return readTransaction(raw).gas * maxFeePerGas;
}

const mostSafe = BigInt(Number.MAX_SAFE_INTEGER);

/** An item of RLP: where its content starts and ends. */
type Place = { isList: boolean; start: number; end: number };

/** Where the item at a character is, in any spelling. */
function locateItem(text: string, at: number): Place {
  const first = Number.parseInt(text.slice(at, at + 2), 16);
  if (first < shortBytes) return { isList: false, start: at, end: at + 2 };
  const isList = first >= shortList;
  const size = first - (isList ? shortList : shortBytes);
  if (size <= mostShort) return { isList, start: at + 2, end: at + 2 + 2 * size };
  const start = at + 2 + 2 * (size - mostShort);
  return { isList, start, end: start + 2 * Number.parseInt(text.slice(at + 2, start), 16) };
}

type Item = Place & { digits: string };

/** The item at a character, in its one spelling; undefined where there is none that ends by `limit`. */
function readItem(text: string, at: number, limit: number): Item | undefined {
  if (at + 2 > limit) return undefined;
  const { isList, start, end } = locateItem(text, at);
  if (start > limit || end > limit) return undefined;
  const digits = text.slice(start, end);
  const spelled = isList ? encodeHead(digits, shortList, longList) : encodeBytes(digits);
  return text.startsWith(spelled, at) ? { isList, start, end, digits } : undefined;
}

/** A number without leading zeros, of 32 bytes at most. */
function readNumber(digits: string): bigint | undefined {
  if (digits === "") return 0n;
  return digits.length > 64 || digits.startsWith("00") ? undefined : BigInt(`0x${digits}`);
}
