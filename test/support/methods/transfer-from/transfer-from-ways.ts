import { createWaysToPay } from "../../../../src/methods/on-chain/ways-to-pay.ts";
import { transferFrom } from "./transfer-from-method.ts";
import { transferFromSettling } from "./transfer-from-settling.ts";

export const transferFromWays = createWaysToPay([transferFrom], [transferFromSettling]);
