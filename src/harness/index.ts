export type { OrganizationData } from "../config/organization-file.ts";
export type { LogLevel } from "../config/values.ts";
export type { PaymentSummary } from "../observe/timeline/payment-view.ts";
export { ConfigurationError, KitError } from "../util/errors.ts";
export type { BuyerOptions, ChallengeSpec, HarnessBuyer, ShopConfig } from "./api/buyer.ts";
export { connectHarness, createHarness } from "./api/create-harness.ts";
export type {
  AssetOptions,
  Harness,
  HarnessCaller,
  HarnessNetwork,
  HarnessOptions,
  HarnessSnapshot,
  Payment,
  PaymentRequestBody,
  ServiceAnswer,
  SettleOptions,
  SignedRequest,
} from "./api/harness-api.ts";
export type { HarnessClient } from "./api/viem-client.ts";
export type { BrowserWallet, WalletOptions, WalletReply } from "./api/wallet.ts";
export type { Payer, PaymentSpec } from "./control/pay.ts";
export type { CallMatch, FaultKind, FaultSpec } from "./faults/fault-spec.ts";
export type {
  ChainFaultSetter,
  ConnectionFaultSetter,
  FacilitatorFaultSetter,
  FacilitatorMatch,
  Fault,
  FaultReport,
  Faults,
} from "./faults/faults.ts";
export type { ForkOption } from "./fork/fork-options.ts";
export type {
  JournalRequest,
  JournalRpcCall,
  JournalTransaction,
  PaymentJournal,
} from "./journal/journal.ts";
export type { Journal } from "./journal/journal-reader.ts";
