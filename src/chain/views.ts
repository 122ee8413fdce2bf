import { type Address, addressWord, byteWords, type Hex, keccak256Text, uintWord } from "../protocol/hex.ts";
import type { ViewCall } from "./view-calls.ts";

/** The four bytes that choose a function, or name an error: the start of keccak256 of its signature. */
export function selector(signature: string): Hex {
  return `0x${keccak256Text(signature).slice(2, 10)}`;
}

/** More gas than any of these views can cost, behind a proxy too. */
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

/** Asks for the code at an account alone: a call without gas does not run it. */
export function codeOf(account: Address): ViewCall {
  return { target: account, data: "0x", gas: 0 };
}

export function decimalsOf(asset: Address): ViewCall {
  return { target: asset, data: selectors.decimals };
}

/** Of tokens, and of the facilitator contract. */
export function isPaused(contract: Address): ViewCall {
  return { target: contract, data: selectors.paused };
}

export function hasOperatorRole(facilitatorContract: Address, account: Address): ViewCall {
  const data: Hex = `${selectors.hasRole}${operatorRole.slice(2)}${addressWord(account)}`;
  return { target: facilitatorContract, data };
}

export function domainSeparatorOf(asset: Address): ViewCall {
  return { target: asset, data: selectors.domainSeparator };
}

/** What a wallet is asked by, and what it answers to say yes (EIP-1271). */
export const isValidSignatureSelector = selector("isValidSignature(bytes32,bytes)");

/** `isValidSignature(digest, signature)` of a contract wallet (EIP-1271). */
export function encodeIsValidSignature(digest: Hex, signature: Hex): Hex {
  return `${isValidSignatureSelector}${digest.slice(2)}${uintWord(64n)}${byteWords(signature)}`;
}
