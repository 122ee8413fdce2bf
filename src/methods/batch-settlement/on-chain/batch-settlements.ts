import type { Settling } from "../../on-chain/settling.ts";
import { claimSettling } from "./claim-settling.ts";
import { depositSettling, permit2DepositSettling } from "./deposit-settling.ts";
import { payoutSettling } from "./payout-settling.ts";
import { refundSettling } from "./refund-settling.ts";
import { voucherSettling } from "./voucher-settling.ts";

/** How each kind of payload of scheme “batch-settlement” is settled. */
export const batchSettlements: readonly Settling[] = [
  depositSettling,
  permit2DepositSettling,
  voucherSettling,
  claimSettling,
  payoutSettling,
  refundSettling,
];
