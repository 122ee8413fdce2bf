import { keccak256, type Hex } from "../protocol/hex.ts";

/**
 * Earlier versions of the facilitator contract that were published, by the hash of their deployed code: their events prove
 * payments as today's do. `isComplete`: it has every function of today's, so that it may be offered.
 */
const formerVersions: ReadonlyMap<Hex, { isComplete: boolean }> = new Map([
  // Settles EIP-3009 through the contract alone; its forwards have no limit.
  ["0x0da076130f8c7f4ed7c0c6a5cb4345c90d1bf9eb61773c44e23ddb68542873c1", { isComplete: false }],
  // The same source, compiled for more runs of the optimizer.
  ["0x3d663a52c34b1b002a357887ade4416d97854a8507bf77febc8c77b71cd43c1d", { isComplete: true }],
]);

/** The published version that a deployed code is of; undefined if it is none. */
export function findFormerVersion(code: Hex): { isComplete: boolean } | undefined {
  return formerVersions.get(keccak256(code));
}
