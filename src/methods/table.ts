import { exactEip3009Method } from "./exact-eip3009/eip3009-method.ts";
import type { Method } from "./method.ts";
import { exactPermit2Method, uptoPermit2Method } from "./permit2/permit2-methods.ts";

/*
 * The off-chain half of each payment method. The other halves have a table each: `on-chain/table.ts` and `table-for-people.ts`.
 */
const table = [uptoPermit2Method, exactPermit2Method, exactEip3009Method] as const;

export type Scheme = (typeof table)[number]["scheme"];

/** How a token moves: `assetTransferMethod` of an offer. */
export type TransferMethod = (typeof table)[number]["transfer"];

/**
 * The payment methods. A payload that belongs to none of them is read by the last of its scheme, whose refusal says what is missing.
 */
export const methods: readonly [Method<Scheme, TransferMethod>, ...Method<Scheme, TransferMethod>[]] = table;
