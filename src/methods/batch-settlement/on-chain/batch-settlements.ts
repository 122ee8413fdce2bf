import type { Settling } from "../../on-chain/settling.ts";
import { claimSettling } from "./claim-settling.ts";
import { depositSettling, permit2DepositSettling } from "./deposit-settling.ts";
import { payoutSettling } from "./payout-settling.ts";
import { refundSettling } from "./refund-settling.ts";
import { voucherSettling } from "./voucher-settling.ts";

/** The on-chain parts of scheme "batch-settlement", one for each kind of payload. */
export const batchSettlements: readonly Settling[] = [
  depositSettling,
  permit2DepositSettling,
  voucherSettling,
  claimSettling,
  payoutSettling,
  refundSettling,
];
