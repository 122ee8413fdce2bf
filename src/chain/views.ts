import {
  type Address,
  addressWord,
  byteWords,
  type Hex,
  isBytes,
  keccak256,
  keccak256Text,
  quantity,
  uintWord,
  wordAt,
} from "../protocol/hex.ts";
import type { RpcCall } from "./rpc/rpc.ts";

/** Returns a function or error selector: the first four bytes of the keccak256 of its signature. */
export function selector(signature: string): Hex {
  return `0x${keccak256Text(signature).slice(2, 10)}`;
}

/** More gas than any of these views can cost, even behind a proxy. */
export const viewGas = 100_000;

const selectors = {
  balanceOf: selector("balanceOf(address)"),
  isBlacklisted: selector("isBlacklisted(address)"),
  paused: selector("paused()"),
  hasRole: selector("hasRole(bytes32,address)"),
  domainSeparator: selector("DOMAIN_SEPARATOR()"),
  decimals: selector("decimals()"),
};

const operatorRole = keccak256Text("OPERATOR_ROLE");

export function balanceOf(asset: Address, account: Address): ViewCall {
  return { target: asset, data: `${selectors.balanceOf}${addressWord(account)}` };
}

export function isBlacklisted(asset: Address, account: Address): ViewCall {
  return { target: asset, data: `${selectors.isBlacklisted}${addressWord(account)}` };
}

/** Asks only for the code at an account: a call without gas does not run it. */
export function codeOf(account: Address): ViewCall {
  return { target: account, data: "0x", gas: 0 };
}

export function decimalsOf(asset: Address): ViewCall {
  return { target: asset, data: selectors.decimals };
}

/** For tokens, and for the facilitator contract. */
export function isPaused(contract: Address): ViewCall {
  return { target: contract, data: selectors.paused };
}

/** @param role its hash, as the contract names it */
export function hasRole(facilitatorContract: Address, role: Hex, account: Address): ViewCall {
  return { target: facilitatorContract, data: `${selectors.hasRole}${role.slice(2)}${addressWord(account)}` };
}

export function hasOperatorRole(facilitatorContract: Address, account: Address): ViewCall {
  return hasRole(facilitatorContract, operatorRole, account);
}

export function domainSeparatorOf(asset: Address): ViewCall {
  return { target: asset, data: selectors.domainSeparator };
}

/** The selector of a wallet's signature check, which is also its answer for a valid signature (EIP-1271). */
export const isValidSignatureSelector = selector("isValidSignature(bytes32,bytes)");

/** Encodes `isValidSignature(digest, signature)` for a contract wallet (EIP-1271). */
export function encodeIsValidSignature(digest: Hex, signature: Hex): Hex {
  return `${isValidSignatureSelector}${digest.slice(2)}${uintWord(64n)}${byteWords(signature)}`;
}

/** A function call: its target, its calldata, and its gas if it differs from the usual. */
export type ViewCall = {
  target: Address;
  data: Hex;
  gas?: number;
  /** True if it is not a view: later calls in the same program see its changes, and nobody else does. */
  changes?: boolean;
};

export type ViewResult = {
  /**
   * The hash of the code at the address; null if there is none. A delegation (EIP-7702) is code too: the 23 bytes
   * 0xef0100 and the delegate, so all accounts with one delegate have the same hash.
   */
  codeHash: Hex | null;
  /** The first word returned; undefined if the call failed or returned less. */
  word: Hex | undefined;
};

/** The results of all calls, and the block they ran at. */
export type ViewResults = { blockNumber: bigint; results: readonly ViewResult[] };

/** Returns true if a view returned true; false if it returned nothing, as for a token without a blacklist. */
export function isTrue(word: Hex | undefined): boolean {
  return word !== undefined && BigInt(word) !== 0n;
}

/** The block number precedes the results. */
const wordsBefore = 1;
const wordsPerView = 3;

/**
 * Builds one `eth_call` that makes many calls at the same block (by default the newest), each with at most `gasEach`
 * gas, and reports the result of each.
 *
 * When called directly, a function that does not exist, reverts, or burns all its gas looks like a failing node on
 * many nodes: an error without data. So the calls are made by a program that the node runs as if it deployed a
 * contract, and the code it would deploy is the results. It begins with
 *
 *     note the number of the block               NUMBER PUSH3 0 MSTORE
 *
 * continues for each view, unrolled, with
 *
 *     copy its calldata to memory                PUSH3 size PUSH3 from PUSH3 scratch CODECOPY
 *     call, first word of the answer to memory   PUSH1 32 PUSH3 word PUSH3 size PUSH3 scratch PUSH20 target PUSH3 gas STATICCALL
 *     success and at least a word returned       PUSH1 31 RETURNDATASIZE GT AND
 *     note it, and the hash of the code          PUSH3 ok MSTORE PUSH20 target EXTCODEHASH PUSH3 code MSTORE
 *
 * and ends with `PUSH3 size PUSH1 0 RETURN`, followed by the calldata of all calls.
 */
export function callViews(
  views: readonly ViewCall[],
  gasEach: number,
  block: bigint | "latest" = "latest",
): RpcCall {
  const resultBytes = (wordsBefore + views.length * wordsPerView) * 32;
  const scratch = push3(resultBytes);
  const begin = `43${push3(0)}52`;
  const end = `${scratch}6000f3`;
  // Each step without the offset of its calldata, which is only known once all steps are written.
  const steps = views.map(({ target, data, gas = gasEach, changes = false }, index) => {
    const size = push3(data.length / 2 - 1);
    const first = (wordsBefore + index * wordsPerView) * 32;
    const push20 = `73${addressWord(target).slice(24)}`;
    // CALL, which also takes a value, or STATICCALL.
    const [coins, opcode] = changes ? ["6000", "f1"] : ["", "fa"];
    const call = `6020${push3(first + 64)}${size}${scratch}${coins}${push20}${push3(gas)}${opcode}`;
    const noted = `601f3d1116${push3(first + 32)}52${push20}3f${push3(first)}52`;
    return { size, rest: `${scratch}39${call}${noted}`, data };
  });
  let from = steps.reduce((digits, { size, rest }) => digits + 2 * size.length + rest.length, 0) / 2;
  from += (begin.length + end.length) / 2;
  let program = `0x${begin}`;
  for (const { size, rest, data } of steps) {
    program += `${size}${push3(from)}${rest}`;
    from += data.length / 2 - 1;
  }
  const data = `${program}${end}${steps.map((step) => step.data.slice(2)).join("")}` as Hex;
  // Enough to store the results as if they were code, and for the calldata at no more than 40 gas per byte.
  const gasOfAll = views.reduce((sum, { gas = 0 }) => sum + Math.max(gas, gasEach) + 50_000, 0);
  const gas = 500_000 + gasOfAll + 40 * data.length;
  const at = block === "latest" ? block : quantity(block);
  return { method: "eth_call", params: [{ data, gas: quantity(gas) }, at] };
}

function push3(value: number): string {
  return `62${value.toString(16).padStart(6, "0")}`;
}

/** The EXTCODEHASH of accounts without code, which differs for those that do not exist (EIP-1052). */
const noCode: ReadonlySet<string> = new Set(["0".repeat(64), keccak256("0x").slice(2)]);

/** Parses the result of {@link callViews} for `count` views; undefined if it is malformed. */
export function readViews(answer: unknown, count: number): ViewResults | undefined {
  if (!isBytes(answer) || answer.length !== 2 + (wordsBefore + count * wordsPerView) * 64) return undefined;
  const word = (index: number) => wordAt(answer, index) ?? "";
  return {
    blockNumber: BigInt(`0x${word(0)}`),
    results: Array.from({ length: count }, (_, index) => {
      const first = wordsBefore + index * wordsPerView;
      return {
        codeHash: noCode.has(word(first)) ? null : `0x${word(first)}`,
        word: /[^0]/.test(word(first + 1)) ? `0x${word(first + 2)}` : undefined,
      };
    }),
  };
}
