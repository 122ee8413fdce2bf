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
 * Transactions in RLP, read by hand here and written by `encode-transaction.ts`. For one signature, viem takes a
 * transaction apart and puts it together several times, and one with fifty payments has 15 KB. Importing viem takes
 * 150 ms, and pages with the fixtures do not need it.
 */

/** A signed transaction of another account. For the older types, both fees are the gas price. */
export type ForeignTransaction = TransactionFields & {
  /** In wei. */
  value: bigint;
  raw: Hex;
  hash: Hex;
  digest: Hex;
  /** r, s and v (27 or 28), not verified. */
  signature: Hex;
};

/** The longest transaction that is read, in bytes; a call with two arguments has some 180. */
const mostBytes = 1_024;

/**
 * Reads a signed transaction of type 2 (EIP-1559), type 1 (EIP-2930) or the legacy type that calls a contract and has an empty
 * access list. It must be canonically encoded, as nodes require: another encoding of the same transaction would have another
 * hash. A legacy transaction must be for one chain (EIP-155), since otherwise it could be sent on every chain.
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
  // The gas price of the older types is both their maximum fee and their tip.
  if (type !== "02") items.splice(1, 0, ...items.slice(1, 2));
  if (items.length !== 7 || [...items, ...ending, chain].some((item) => item?.isList)) return undefined;
  const [nonce, tip, fee, gas, , value] = items.map(({ digits }) => readNumber(digits));
  const [v, r, s] = ending.map(({ digits }) => readNumber(digits));
  const to = items[4]?.digits;
  const data = items[6]?.digits;
  if ([nonce, tip, fee, gas, value, v, r, s].includes(undefined) || to?.length !== 40) return undefined;
  const [count = 0n, maxPriorityFeePerGas = 0n, maxFeePerGas = 0n, last = 0n] = [nonce, tip, fee, v];
  // With EIP-155, v is 35 or 36 plus twice the chain id.
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

/** Reads a transaction signed by one of our own accounts. */
export function readTransaction(raw: Hex): { txNonce: number; gas: bigint; to: Address; data: Hex } {
  // 0x02 and the list: chain id, txNonce, tip, fee, gas limit, to, value, data.
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

/** An RLP item: where its content starts and ends. */
type Place = { isList: boolean; start: number; end: number };

/** Locates the item at a position, canonically encoded or not. */
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

/** Reads the item at a position; undefined if it does not end by `limit` or is not canonically encoded. */
function readItem(text: string, at: number, limit: number): Item | undefined {
  if (at + 2 > limit) return undefined;
  const { isList, start, end } = locateItem(text, at);
  if (start > limit || end > limit) return undefined;
  const digits = text.slice(start, end);
  const spelled = isList ? encodeHead(digits, shortList, longList) : encodeBytes(digits);
  return text.startsWith(spelled, at) ? { isList, start, end, digits } : undefined;
}

/** Reads a number of at most 32 bytes, without leading zeros. */
function readNumber(digits: string): bigint | undefined {
  if (digits === "") return 0n;
  return digits.length > 64 || digits.startsWith("00") ? undefined : BigInt(`0x${digits}`);
}
