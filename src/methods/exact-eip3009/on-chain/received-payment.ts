import type { Address, Hex } from "../../../protocol/hex.ts";
import type { SettleCall } from "../../on-chain/settling.ts";

/** What a payment brings to the facilitator contract, and to whom it goes on from there. */
export type ReceivedPayment = {
  asset: Address;
  payer: Address;
  authorizationNonce: Hex;
  value: bigint;
  recipient: Address;
  /** As in {@link SettleCall}. */
  id?: Hex;
};

/** What a payment brings once its authorization is used. */
export function receivedOf({ payment, recipient, id }: SettleCall): ReceivedPayment {
  const { asset, payer, nonce: authorizationNonce, limit: value } = payment;
  return { asset, payer, authorizationNonce, value, recipient, ...(id !== undefined && { id }) };
}
