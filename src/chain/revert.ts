import type { Hex } from "../protocol/hex.ts";

/** Decoded revert data. */
export type Revert =
  /** `Error(string)`, as USDC reverts. */
  | { kind: "error"; message: string }
  /** `Panic(uint256)`. */
  | { kind: "panic"; code: bigint }
  /** A custom error of the facilitator contract (or of OpenZeppelin inside it). */
  | { kind: "custom"; name: string; args: readonly unknown[] }
  /** Anything else, empty data included. */
  | { kind: "unknown"; data: Hex };
