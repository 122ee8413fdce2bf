import type { Address } from "../protocol/hex.ts";
import type { Asset, Network } from "../protocol/networks.ts";
import type { PayToPolicy } from "../protocol/signed-payment.ts";

/** A network as one deployment of the service uses it. */
export type NetworkConfig = Network & {
  /** Where payments may always go, and which forwards them: `payTo` of the requirements and of what is signed. */
  facilitatorContract: Address;
  /** Where else they may go; nowhere else by default. */
  payTo?: PayToPolicy | undefined;
  /** JSON-RPC endpoints, in order of preference. */
  rpcUrls: readonly [string, ...string[]];
  /** The assets that may be paid with; anything else is `invalid_payment_requirements`. */
  assets: readonly Asset[];
  /** How many blocks, counting its own, a settlement needs before it is a success; at least 1. */
  confirmations: number;
  /**
   * How many RPC endpoints must have the receipt of a payment before it is a success; 1 by default. Never more than
   * there are.
   */
  successEndpoints?: number;
  /**
   * How many RPC endpoints must show that a payment was submitted directly to the token before its value is forwarded;
   * 2 by default. Where there are fewer, the payment waits for `x402-kit recover`.
   */
  forwardEndpoints?: number;
  /** The most an operator pays per gas, in wei. */
  maxFeePerGas: bigint;
  /** The most that one settle transaction may cost, in wei: its gas limit times what it offers per gas. */
  maxTransactionCost?: bigint | undefined;
  /** The most that settling for one organization may cost in gas on one day (UTC), in wei, where it has no budget of its own. */
  dailyGasBudget?: bigint | null | undefined;
  /** Operators that can pay for fewer settlements than this cause a warning; 500 by default. */
  gasHorizonPayments?: bigint;
  /** How long from the chain's time a payment may be valid, in seconds; a day by default. */
  maxValiditySeconds?: bigint;
  /** Whether payments of 0 are settled; refused by default. */
  allowZeroValue?: boolean;
};
