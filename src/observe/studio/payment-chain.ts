import type { RpcAnswer } from "../../chain/rpc/rpc.ts";
import type { PaymentUse } from "../../methods/on-chain/settling.ts";
import type { Address } from "../../protocol/hex.ts";
import type { Asset, Network } from "../../protocol/networks.ts";
import type { LoggedPayment } from "./payment-log.ts";
import type { TransactionView } from "./payment-view.ts";

/** A chain that a capture reads. No transactions are sent. */
export type ReadableChain = {
  network: Pick<Network, "name" | "chainId">;
  facilitatorContract: Address;
  asset: Asset;
  /** The usual time between its blocks, in milliseconds. */
  blockTimeMs: number;
  /** Of so many of its newest blocks a local node keeps the state, and of all blocks the logs. */
  statesKept?: number;
  /** A node's result of, or error for, one call; throws if the node does not answer. */
  ask(method: string, ...params: readonly unknown[]): Promise<RpcAnswer>;
};

/** What the chain of a payment says of it. It is asked when a person looks at the payment, and for no verdict. */
export type PaymentChain = {
  /**
   * The newest transaction that carried the payment.
   *
   * @throws {KitError} when there is none, or the node does not know it
   */
  transaction(payment: LoggedPayment): Promise<TransactionView>;
  /** How its authorization was used; undefined where that could not be found out soon. Never throws. */
  authorizationUse(payment: Pick<LoggedPayment, "request" | "summary">): Promise<PaymentUse | undefined>;
  /** The chain's time, unix seconds, at a time in unix milliseconds, where blocks and their times are remembered. */
  timeAt?(network: string, at: number): bigint | undefined;
};
