import { type Address, addressWord, type Hex, keccak256Text } from "../../protocol/hex.ts";
import type { ViewCall } from "../view-calls.ts";
import { selector } from "./calldata.ts";

/** More gas than any of these views can cost, behind a proxy too. */
export const viewGas = 100_000;

const selectors = {
  authorizationState: selector("authorizationState(address,bytes32)"),
  balanceOf: selector("balanceOf(address)"),
  isBlacklisted: selector("isBlacklisted(address)"),
  paused: selector("paused()"),
  hasRole: selector("hasRole(bytes32,address)"),
  domainSeparator: selector("DOMAIN_SEPARATOR()"),
  decimals: selector("decimals()"),
  forwardLimit: selector("forwardLimit(address)"),
  availableToForward: selector("availableToForward(address)"),
};

const operatorRole = keccak256Text("OPERATOR_ROLE");

/** Whether a payer's authorization was used or cancelled (EIP-3009). */
export function authorizationStateOf(asset: Address, payer: Address, authorizationNonce: Hex): ViewCall {
  const data: Hex = `${selectors.authorizationState}${addressWord(payer)}${authorizationNonce.slice(2)}`;
  return { target: asset, data };
}

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

/** What may be forwarded of an asset at once, and what of that may be now. */
export function forwardLimitOf(facilitatorContract: Address, asset: Address): [ViewCall, ViewCall] {
  const view = (selected: Hex): ViewCall => ({
    target: facilitatorContract,
    data: `${selected}${addressWord(asset)}`,
  });
  return [view(selectors.forwardLimit), view(selectors.availableToForward)];
}

export function domainSeparatorOf(asset: Address): ViewCall {
  return { target: asset, data: selectors.domainSeparator };
}
