import { keccak256Text } from "../../protocol/hex.ts";

/** First topics of the events that prove what became of a payment. Tests hold them against the ABIs. */

/** Of the facilitator contract. */
export const settledTopic = keccak256Text("Settled(address,address,bytes32,address,uint256)");
export const settlementFailedTopic = keccak256Text("SettlementFailed(address,address,bytes32,bytes)");
export const forwardedTopic = keccak256Text("Forwarded(address,address,bytes32,address,uint256)");

/** Of tokens. */
export const authorizationUsedTopic = keccak256Text("AuthorizationUsed(address,bytes32)");
export const authorizationCanceledTopic = keccak256Text("AuthorizationCanceled(address,bytes32)");
export const transferTopic = keccak256Text("Transfer(address,address,uint256)");
