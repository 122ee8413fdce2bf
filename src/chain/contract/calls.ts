import type { Authorization } from "../../protocol/authorization.ts";
import type { Address, Hex } from "../../protocol/hex.ts";

/** One payment as the facilitator contract takes it, to settle or to forward it. `authorization.to` is the contract itself. */
export type SettleCall = {
  asset: Address;
  authorization: Authorization;
  signature: Hex;
  recipient: Address;
  /** The settlement's id, for observers of what is asked about it. */
  id?: Hex;
};

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
