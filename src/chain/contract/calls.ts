import type { Authorization } from "../../protocol/authorization.ts";
import type { Address, Hex } from "../../protocol/hex.ts";

/** One payment as the facilitator contract takes it. `authorization.to` is the contract itself. */
export type SettleCall = {
  asset: Address;
  authorization: Authorization;
  signature: Hex;
  recipient: Address;
  /** The settlement's id, for observers of what is asked about it. */
  id?: Hex;
};

/** Value of an authorization that reached the facilitator contract, and is to go on to its recipient. */
export type ForwardCall = {
  asset: Address;
  payer: Address;
  authorizationNonce: Hex;
  value: bigint;
  recipient: Address;
  /** As in {@link SettleCall}. */
  id?: Hex;
};
