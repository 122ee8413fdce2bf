export { KitError } from "../errors/base.ts";
export { ConfigurationError } from "../errors/configuration.ts";
export { connectHarness } from "./connect-harness.ts";
export { createHarness } from "./create-harness.ts";
export type { FaultReport } from "./faults/fault-board.ts";
export type { CallMatch, FaultKind, FaultOrder } from "./faults/fault-order.ts";
export type { ChainFaultSetter, ConnectionFaultSetter, Fault, Faults } from "./faults/faults.ts";
export type { ForkOption } from "./fork/fork-options.ts";
export type {
  Harness,
  HarnessNetwork,
  Payment,
  PaymentRequestBody,
  ServiceAnswer,
  SettleOptions,
} from "./harness-api.ts";
export type { AssetOptions, HarnessOptions, LogLevel } from "./harness-options.ts";
export type { Journal } from "./journal/journal-reader.ts";
export type {
  JournalRequest,
  JournalRpcCall,
  JournalTransaction,
  PaymentJournal,
} from "./journal/payment-journal.ts";
export type { Payer, PaymentOrder } from "./pay.ts";
export type { HarnessClient } from "./viem-client.ts";
