import type { NetworkConfig } from "../config/network-config.ts";
import type { Address } from "../protocol/hex.ts";
import type { Head } from "../rpc/calls.ts";
import type { RpcAnswer, RpcCall } from "../rpc/rpc.ts";

/**
 * - `ok`: as it should be;
 * - `warning`: works, but should be looked at;
 * - `failed`: does not work.
 */
export type CheckStatus = "ok" | "warning" | "failed";

/** What one check found: a line of `doctor`, and of the log of `serve`. */
export type Check = {
  /** What was looked at, in a word or two. */
  name: string;
  status: CheckStatus;
  /** What was found. */
  detail: string;
  /** What to do about it. */
  advice?: string;
  /** The account that it is about, where a failure keeps that account from sending. */
  account?: Address;
  /** Waiting does not mend it: what it is about must not be served. Only with `failed`. */
  fatal?: true;
};

type CheckDetails = Partial<Pick<Check, "advice" | "account" | "fatal">>;

export const ok = (name: string, detail: string, more: CheckDetails = {}): Check => ({
  ...{ name, status: "ok", detail },
  ...more,
});

export const warning = (name: string, detail: string, advice: string, more: CheckDetails = {}): Check => ({
  ...{ name, status: "warning", detail, advice },
  ...more,
});

export const failed = (name: string, detail: string, more: CheckDetails = {}): Check => ({
  ...{ name, status: "failed", detail },
  ...more,
});

/** The accounts of a service. */
export type Accounts = { operators: readonly Address[]; recoverer: Address | undefined };

/** What a check of a network may know besides the answers to its calls. */
export type CheckContext = Accounts & {
  network: NetworkConfig;
  /** The newest block of the endpoint that answers. */
  head: Head;
  /** The txNonce after an operator's last one in the ledger, null for one it does not know; undefined without a ledger. */
  nextTxNonce: ((chainId: number, operator: Address) => Promise<number | null>) | undefined;
};

/** A named check of a network: what it asks a node, and what it makes of the answers, which come in that order. */
export type NetworkCheck = {
  name: string;
  /** A network whose check could not be made is not served before it could. */
  required: boolean;
  calls(context: Omit<CheckContext, "head" | "nextTxNonce">): readonly RpcCall[];
  /** @throws UndeterminedError when an answer cannot be used. */
  read(answers: readonly RpcAnswer[], context: CheckContext): readonly Check[] | Promise<readonly Check[]>;
};
