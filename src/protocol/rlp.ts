/* RLP, the encoding of transactions. Bytes are hexadecimal digits without 0x. */

export const shortBytes = 0x80;
export const longBytes = 0xb7;
export const shortList = 0xc0;
export const longList = 0xf7;
/** The most bytes whose length fits into the prefix byte. */
export const mostShort = 55;

/** Encodes bytes as an item. */
export function encodeBytes(digits: string): string {
  const isOneSmallByte = digits.length === 2 && Number.parseInt(digits, 16) < shortBytes;
  return isOneSmallByte ? digits : `${encodeHead(digits, shortBytes, longBytes)}${digits}`;
}

/** Encodes a list of encoded items. */
export function encodeList(digits: string): string {
  return `${encodeHead(digits, shortList, longList)}${digits}`;
}

/** The prefix of bytes or a list; `short` and `long` are the first bytes of its two forms. */
export function encodeHead(digits: string, short: number, long: number): string {
  const length = digits.length / 2;
  if (length <= mostShort) return hexByte(short + length);
  const size = evenHex(length);
  return `${hexByte(long + size.length / 2)}${size}`;
}

/** Encodes a number without leading zeros as an item. */
export function encodeNumber(value: number | bigint): string {
  return encodeBytes(value === 0 || value === 0n ? "" : evenHex(value));
}

function evenHex(value: number | bigint): string {
  const digits = value.toString(16);
  return digits.length % 2 === 0 ? digits : `0${digits}`;
}

const hexByte = (value: number) => value.toString(16).padStart(2, "0");
