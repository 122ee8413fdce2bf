import { createRequestParser } from "../protocol/requests.ts";
import { batchSettlementMethods } from "./batch-settlement/batch-settlement-methods.ts";
import type { TakenMethod } from "./method.ts";
import { methods } from "./methods.ts";

/** The payment methods of the tables, and those of the scheme that pages load late: see {@link namesLateScheme}. */
export const allMethods: readonly [TakenMethod, ...TakenMethod[]] = [...methods, ...batchSettlementMethods];

/** Reads the JSON body of a verify or settle call that is paid in any of these ways. */
export const parseAnyRequest = createRequestParser(allMethods);
