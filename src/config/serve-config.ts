import type { ServedNetwork } from "../protocol/checks.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { Network } from "../protocol/networks.ts";
import type { X402Version } from "../protocol/requests.ts";
import type { CorsOrigins } from "../protocol/routes.ts";
import type { ConfigurationProblem } from "../util/errors.ts";
import type { LogLevel, NetworkKey, RequestRate, TrustProxy } from "./values.ts";

/** The location of the operators' keys. There is at least one operator; several take turns. */
export type Operators =
  | { readonly kind: "local"; readonly privateKeys: readonly [Hex, ...Hex[]] }
  | { readonly kind: "remote"; readonly url: string; readonly addresses: readonly [Address, ...Address[]] };

/** The configuration of `serve`, valid as a whole. Contains secrets: never print or log it. */
export type ServeConfig = {
  readonly networks: readonly NetworkConfig[];
  readonly operators: Operators;
  /** Recovers payments that were submitted directly to the token. */
  readonly recovererKey: Hex | undefined;
  /** Gives payers gas money for their approvals. */
  readonly sponsorKey: Hex | undefined;
  /** Sign claims and refunds of channels for shops. */
  readonly authorizerKeys: readonly NetworkKey[];
  readonly databaseUrl: string;
  readonly apiKeyPepper: string;
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  readonly trustProxy: TrustProxy;
  readonly rateLimits: { readonly key: RequestRate; readonly address: RequestRate };
  /** The maximum number of settles that wait for their outcome at the same time. */
  readonly maxSettles: number;
  /** The listener for metrics, if any. */
  readonly metrics: { readonly host: string; readonly port: number } | undefined;
  /** The admin listener and its token, if any. */
  readonly admin: { readonly host: string; readonly port: number; readonly token: string } | undefined;
  /** For both protocol versions; undefined for the service's default of each. */
  readonly settleWaitMs: number | undefined;
  /** After SIGTERM: how long new requests are still accepted, and when the process ends at the latest. */
  readonly shutdown: { readonly drainDelayMs: number; readonly timeoutMs: number };
  readonly anonymousVerify: boolean;
  /** The origins of web pages that may call the API; undefined for none. */
  readonly corsOrigins: CorsOrigins | undefined;
  /** True if the resources that organizations were paid for are stored and shown to them. */
  readonly discovery: boolean;
  /** True if `/docs` serves a page about the API. */
  readonly docs: boolean;
  readonly logLevel: LogLevel;
  /** Warnings about settings that work but are probably unintended. */
  readonly warnings: readonly ConfigurationProblem[];
};

/** Signs claims and refunds for the channels that name it. */
export type Authorizer = { readonly address: Address; sign(digest: Hex): Hex };

/** A network with the settings of one deployment of the service. */
export type NetworkConfig = Network &
  ServedNetwork & {
    /** JSON-RPC endpoints, in order of preference. */
    rpcUrls: readonly [string, ...string[]];
    /** How many blocks, including its own, a settlement needs before it is a success; at least 1. */
    confirmations: number;
    /** How many RPC endpoints must have a payment's receipt before it is a success; 1 by default, at most all of them. */
    successEndpoints?: number;
    /**
     * How many RPC endpoints must show that a payment was submitted directly to the token before its value is
     * forwarded; 2 by default. With fewer endpoints, the payment waits for `x402-kit recover`.
     */
    forwardEndpoints?: number;
    /** The operator's maximum price per gas, in wei. */
    maxFeePerGas: bigint;
    /** The maximum cost of one settle transaction, in wei: its gas limit times its maximum fee. */
    maxTransactionCost?: bigint | undefined;
    /** The daily gas budget (UTC) of an organization without its own, in wei; null or undefined for no limit. */
    dailyGasBudget?: bigint | null | undefined;
    /** Operators that can pay for fewer settlements than this cause a warning; 500 by default. */
    gasHorizonPayments?: bigint;
    /** The sponsor's maximum gas money for approvals, in wei: per gift and per day (UTC). Nothing by default. */
    gifts?: { readonly each: bigint; readonly daily: bigint } | undefined;
    /** Sign claims and refunds for shops: the current `receiverAuthorizer`, and those offered before it. */
    authorizers?: readonly Authorizer[] | undefined;
    /** The facilitator's own builder code, appended to the calldata of its settlements; none by default. */
    builderCode?: string | undefined;
  };

/**
 * How long a settle waits for its outcome by default, in milliseconds. Clients of version 1 cannot ask again, so
 * theirs waits longer.
 */
export const settleWaitDefaultsMs: Readonly<Record<X402Version, number>> = { 1: 80_000, 2: 45_000 };

/** The accepted range for both versions, in milliseconds. */
export const settleWaitBoundsMs = { least: 100, most: 600_000 } as const;

/** The maximum step by which a local chain's time can move forward, in seconds: a hundred years. */
export const longestAdvanceSeconds = 3_155_760_000;
