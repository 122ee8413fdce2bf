import { batchSettlements } from "../batch-settlement/on-chain/batch-settlements.ts";
import { exactEip3009Settling } from "../exact-eip3009/on-chain/eip3009-settling.ts";
import { exactPermit2Settling, uptoPermit2Settling } from "../permit2/on-chain/permit2-settling.ts";
import type { Settling } from "./settling.ts";

/** The on-chain part of each payment method. */
export const settlings: readonly Settling[] = [
  exactEip3009Settling,
  exactPermit2Settling,
  uptoPermit2Settling,
  ...batchSettlements,
];
