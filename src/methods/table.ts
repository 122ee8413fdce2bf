import { exactEip3009Method } from "./exact-eip3009/eip3009-method.ts";
import type { Method } from "./method.ts";
import { exactPermit2Method, uptoPermit2Method } from "./permit2/permit2-methods.ts";

/*
 * The off-chain part of each payment method. The other parts are in `on-chain/table.ts` and `table-for-people.ts`.
 */
const table = [uptoPermit2Method, exactPermit2Method, exactEip3009Method] as const;

export type Scheme = (typeof table)[number]["scheme"];

/** How tokens move: the `assetTransferMethod` of an offer. */
export type TransferMethod = (typeof table)[number]["transfer"];

/**
 * The payment methods. A payload that matches none is read by the last method of its scheme, which reports what is missing.
 */
export const methods: readonly [Method<Scheme, TransferMethod>, ...Method<Scheme, TransferMethod>[]] = table;
