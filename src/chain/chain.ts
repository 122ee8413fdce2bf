import type { NetworkConfig } from "../config/network-config.ts";
import type { Authorization } from "../protocol/authorization.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { Revert } from "./revert.ts";

/** One payment as the facilitator contract takes it. `authorization.to` is the contract itself. */
export type SettleCall = {
  asset: Address;
  authorization: Authorization;
  signature: Hex;
  recipient: Address;
};

/** The newest block, whose time is the chain's time. */
export type Head = {
  number: bigint;
  /** Unix seconds. */
  timestamp: bigint;
  /** Wei per gas. */
  baseFeePerGas: bigint;
};

/** The payer's balance of the asset, in its smallest unit, and the operator's gas money, in wei. */
export type Funds = { payer: bigint; operator: bigint };

/** What `settle` would do now, and when "now" is. */
export type Simulation = {
  /** Its `number` is never above that of the block that the payer's balance was read at. */
  head: Head;
  /** What is there to settle with; read only when asked for. */
  funds: Funds | undefined;
  /** Why it would revert; undefined when it would succeed. */
  revert: Revert | undefined;
};

/** What the code at a payer's address, if any, says of a signature (EIP-1271). */
export type WalletProof = "no_code" | "accepted" | "refused";

/** The state that can keep a correctly signed payment from settling. */
export type Diagnosis = {
  /** Used or cancelled: the token does not tell these two apart. */
  authorizationUsed: boolean;
  balance: bigint;
  payerBlacklisted: boolean;
  recipientBlacklisted: boolean;
  contractBlacklisted: boolean;
  tokenPaused: boolean;
  contractPaused: boolean;
  operatorAuthorized: boolean;
};

/** A mined transaction, with what is needed to prove that it settled something. */
export type Receipt = {
  hash: Hex;
  succeeded: boolean;
  blockNumber: bigint;
  blockHash: Hex;
  logs: readonly { address: Address; topics: readonly Hex[]; data: Hex; logIndex: number }[];
};

/**
 * One network's chain. Every method costs one HTTP request (less where concurrent calls share a JSON-RPC batch, more
 * where one call has more to ask than fits in a batch) and throws {@link UndeterminedError} when the chain could not
 * be asked; a revert is an answer.
 */
export type Chain = {
  readonly network: NetworkConfig;
  /** Runs the real `settle` by `eth_call` from the operator, against the newest block. */
  simulateSettle(call: SettleCall, options: { withFunds: boolean }): Promise<Simulation>;
  /** Asks the payer's code for its word on a signature (EIP-1271), as the token would. */
  askWallet(payer: Address, digest: Hex, signature: Hex): Promise<WalletProof>;
  /** Reads whatever may explain a failed simulation. Only on the failing path. */
  diagnose(call: SettleCall): Promise<Diagnosis>;
  head(): Promise<Head>;
  /** The number of transactions of an account that are mined, which is its next free txNonce. */
  transactionCount(account: Address): Promise<number>;
  /**
   * Sends raw transactions in the given order, in one request. Never throws for a single refused transaction and
   * never classifies one: what became of it is learnt from {@link receipts} and {@link transactionCount}.
   */
  broadcast(rawTransactions: readonly Hex[]): Promise<void>;
  /** Receipts by hash, in the given order; null where there is none yet, or none that can be believed. */
  receipts(hashes: readonly Hex[]): Promise<readonly (Receipt | null)[]>;
  /** Chain id, code of the facilitator contract, and `DOMAIN_SEPARATOR()` of every asset: what start-up checks. */
  inspect(): Promise<{
    chainId: number;
    contractCode: Hex;
    domainSeparators: ReadonlyMap<Address, Hex | undefined>;
  }>;
};
