import {
  type Address,
  addressOfPublicKey,
  type Hex,
  isBytes32,
  keccakBytes,
  toHex,
} from "../../protocol/hex.ts";
import { KitError } from "../../util/errors.ts";
import { publicKeyOf, signDigest } from "../../util/secp256k1.ts";
import type { Signer, UnsignedTransaction } from "./signer.ts";

/**
 * A signer whose key is in this process.
 *
 * @throws KitError when the key is none. The error has no cause: libraries quote the key in theirs.
 */
export function createLocalSigner(privateKey: Hex): Signer {
  const { key, address } = readKey(privateKey);
  return {
    address,
    async signTransaction(transaction) {
      const { maxFeePerGas, maxPriorityFeePerGas } = transaction;
      const { rs, recoveryId } = signDigest(hashOf(encodeTransaction(transaction)), key);
      const signature = Buffer.from(rs).toString("hex");
      const raw = encodeTransaction(transaction, {
        r: signature.slice(0, 64),
        s: signature.slice(64),
        yParity: recoveryId,
      });
      return { raw, hash: toHex(hashOf(raw)), maxFeePerGas, maxPriorityFeePerGas };
    },
  };
}

function hashOf(bytes: Hex): Uint8Array {
  return keccakBytes(Buffer.from(bytes.slice(2), "hex"));
}

function readKey(privateKey: Hex): { key: Uint8Array; address: Address } {
  try {
    // Buffer takes what comes before the first character that is no digit.
    const key = Buffer.from(isBytes32(privateKey) ? privateKey.slice(2) : "", "hex");
    return { key, address: addressOfPublicKey(publicKeyOf(key)) };
  } catch {
    throw new KitError(
      "An operator's private key must be 32 bytes of hex after 0x, above zero and below the order of secp256k1",
    );
  }
}

/**
 * Transactions of type 2 (EIP-1559) in RLP, put together by hand: a transaction of fifty payments has 15 KB, which viem
 * takes apart and puts together again several times for one signature.
 */

/** A signature as a transaction carries it. */
export type TransactionSignature = { r: string; s: string; yParity: 0 | 1 };

/** The bytes that are signed; with a signature, those that are broadcast. */
export function encodeTransaction(transaction: UnsignedTransaction, signature?: TransactionSignature): Hex {
  const { chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas, to, data } = transaction;
  const numbers = [chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas].map(encodeNumber).join("");
  const noValue = encodeNumber(0);
  const noAccessList = encodeList("");
  const body = `${numbers}${encodeBytes(to.slice(2))}${noValue}${encodeBytes(data.slice(2))}${noAccessList}`;
  if (signature === undefined) return `0x02${encodeList(body)}`;
  const { r, s, yParity } = signature;
  return `0x02${encodeList(`${body}${encodeNumber(yParity)}${encodeWord(r)}${encodeWord(s)}`)}`;
}

const shortBytes = 0x80;
const longBytes = 0xb7;
const shortList = 0xc0;
const longList = 0xf7;
/** The most bytes whose number fits in the first byte. */
const mostShort = 55;

function encodeBytes(digits: string): string {
  const isOneSmallByte = digits.length === 2 && Number.parseInt(digits, 16) < shortBytes;
  return isOneSmallByte ? digits : `${encodeHead(digits, shortBytes, longBytes)}${digits}`;
}

function encodeList(digits: string): string {
  return `${encodeHead(digits, shortList, longList)}${digits}`;
}

function encodeHead(digits: string, short: number, long: number): string {
  const length = digits.length / 2;
  if (length <= mostShort) return hexByte(short + length);
  const size = evenHex(length);
  return `${hexByte(long + size.length / 2)}${size}`;
}

function encodeNumber(value: number | bigint): string {
  return encodeBytes(value === 0 || value === 0n ? "" : evenHex(value));
}

/** A number of up to 32 bytes, which are given: leading zeros are not written. */
function encodeWord(digits: string): string {
  return encodeNumber(BigInt(`0x${digits}`));
}

function evenHex(value: number | bigint): string {
  const digits = value.toString(16);
  return digits.length % 2 === 0 ? digits : `0${digits}`;
}

const hexByte = (value: number) => value.toString(16).padStart(2, "0");
