import type { Head } from "../../chain/rpc/calls.ts";
import type { RpcAnswer, RpcCall } from "../../chain/rpc/rpc.ts";
import type { NetworkConfig } from "../../config/serve-config.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { Address } from "../../protocol/hex.ts";

/**
 * - `ok`: as it should be;
 * - `warning`: works, but needs attention;
 * - `failed`: does not work;
 * - `skipped`: not checked, since another check failed.
 */
export type CheckStatus = "ok" | "warning" | "failed" | "skipped";

/** The result of one check: a line of `doctor`, and of the log of `serve`. */
export type Check = {
  name: string;
  status: CheckStatus;
  detail: string;
  advice?: string;
  /** The account that cannot send because of this failure. */
  account?: Address;
  /** True if waiting does not solve it: the network must not be served. Only with `failed`. */
  fatal?: true;
};

type CheckDetails = Partial<Pick<Check, "advice" | "account" | "fatal">>;

export const ok = (name: string, detail: string, more: CheckDetails = {}): Check => ({
  name,
  status: "ok",
  detail,
  ...more,
});

export const warning = (name: string, detail: string, advice: string, more: CheckDetails = {}): Check => ({
  name,
  status: "warning",
  detail,
  advice,
  ...more,
});

export const failed = (name: string, detail: string, more: CheckDetails = {}): Check => ({
  name,
  status: "failed",
  detail,
  ...more,
});

/** The accounts of a service. */
export type Accounts = {
  operators: readonly Address[];
  recoverer: Address | undefined;
  sponsor: Address | undefined;
};

/** The inputs of a network check besides the answers to its calls. */
export type CheckContext = Accounts & {
  network: NetworkConfig;
  ways: WaysToPay;
  /** The newest block of the endpoint that answered. */
  head: Head;
  /**
   * Returns an operator's next txNonce in the ledger, null if the ledger does not know the operator; undefined without
   * a ledger.
   */
  nextTxNonce: ((chainId: number, operator: Address) => Promise<number | null>) | undefined;
  /** True if an operator that is new to the ledger must be new to the chain too. False on local chains. */
  refusesUsedOperators?: boolean | undefined;
};

/** A named check of a network: its calls to a node, and how to read the answers, in the same order. */
export type NetworkCheck = {
  name: string;
  /** True if the network must not be served before this check succeeds in reading the chain. */
  required: boolean;
  calls(context: Omit<CheckContext, "head" | "nextTxNonce" | "refusesUsedOperators">): readonly RpcCall[];
  /** @throws UndeterminedError when an answer cannot be used. */
  read(answers: readonly RpcAnswer[], context: CheckContext): readonly Check[] | Promise<readonly Check[]>;
};
