import type { ViewCall } from "../../../chain/view-calls.ts";
import { selector } from "../../../chain/views.ts";
import { type Address, addressWord, type Hex } from "../../../protocol/hex.ts";

const authorizationState = selector("authorizationState(address,bytes32)");
const forwardLimit = selector("forwardLimit(address)");
const availableToForward = selector("availableToForward(address)");

/** Whether a payer's authorization was used or cancelled (EIP-3009). */
export function authorizationStateOf(asset: Address, payer: Address, authorizationNonce: Hex): ViewCall {
  const data: Hex = `${authorizationState}${addressWord(payer)}${authorizationNonce.slice(2)}`;
  return { target: asset, data };
}

/** What may be forwarded of an asset at once, and what of that may be now. */
export function forwardLimitOf(facilitatorContract: Address, asset: Address): [ViewCall, ViewCall] {
  const view = (selected: Hex): ViewCall => ({
    target: facilitatorContract,
    data: `${selected}${addressWord(asset)}`,
  });
  return [view(forwardLimit), view(availableToForward)];
}
