import type { ServedNetwork } from "../protocol/checks.ts";
import type { Address, Hex } from "../protocol/hex.ts";
import type { Network } from "../protocol/networks.ts";
import type { X402Version } from "../protocol/requests.ts";
import type { CorsOrigins } from "../protocol/routes.ts";
import type { ConfigurationProblem } from "../util/errors.ts";
import type { LogLevel, RequestRate, TrustProxy } from "./values.ts";

/** Where the operators' keys are. At least one operator; several take turns. */
export type Operators =
  | { readonly kind: "local"; readonly privateKeys: readonly [Hex, ...Hex[]] }
  | { readonly kind: "remote"; readonly url: string; readonly addresses: readonly [Address, ...Address[]] };

/** Everything that `serve` needs to know, valid as a whole. Holds secrets: never print or log it. */
export type ServeConfig = {
  readonly networks: readonly NetworkConfig[];
  readonly operators: Operators;
  /** The key that recovers payments that were submitted directly to the token. */
  readonly recovererKey: Hex | undefined;
  /** The key of the account that gives payers gas money for their approvals. */
  readonly sponsorKey: Hex | undefined;
  /** The keys that sign claims and refunds of channels for shops: the one that is offered, and those before it. */
  readonly authorizerKeys: readonly Hex[];
  readonly databaseUrl: string;
  readonly apiKeyPepper: string;
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly trustProxy: TrustProxy;
  readonly rateLimits: { readonly key: RequestRate; readonly address: RequestRate };
  /** Settles that may wait for their outcome at a time. */
  readonly maxSettles: number;
  /** Where the metrics are served; undefined for nowhere. */
  readonly metrics: { readonly host: string; readonly port: number } | undefined;
  /** Where operators can look at payments, and with which token; undefined for nowhere. */
  readonly admin: { readonly host: string; readonly port: number; readonly token: string } | undefined;
  /** For both protocol versions; undefined for what the service has for each. */
  readonly settleWaitMs: number | undefined;
  /** After SIGTERM: how long new requests are still taken, and when the process has ended at the latest. */
  readonly shutdown: { readonly drainDelayMs: number; readonly timeoutMs: number };
  readonly anonymousVerify: boolean;
  /** The origins of web pages that may call; none where it is undefined. */
  readonly corsOrigins: CorsOrigins | undefined;
  /** True if the resources that organizations were paid for are stored and shown to them. */
  readonly discovery: boolean;
  /** True if `/docs` shows a page about the API. */
  readonly docs: boolean;
  readonly logLevel: LogLevel;
  /** Warnings about settings that work, but are probably not meant. */
  readonly warnings: readonly ConfigurationProblem[];
};

/** Signs claims and refunds of the channels that name it. */
export type Authorizer = { readonly address: Address; sign(digest: Hex): Hex };

/** A network as one deployment of the service uses it. */
export type NetworkConfig = Network &
  ServedNetwork & {
    /** JSON-RPC endpoints, in order of preference. */
    rpcUrls: readonly [string, ...string[]];
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
    /** The most gas money that a sponsor gives for approvals, in wei: at once, and on one day (UTC). Nothing by default. */
    gifts?: { readonly each: bigint; readonly daily: bigint } | undefined;
    /** Sign claims and refunds for shops: `receiverAuthorizer`, and those that were offered before it. */
    authorizers?: readonly Authorizer[] | undefined;
    /** The facilitator's own builder code, behind the calldata of what it settles; none by default. */
    builderCode?: string | undefined;
  };

/**
 * How long a settle waits for its outcome unless configured otherwise, in milliseconds. Clients of version 1 cannot ask
 * again, so theirs waits longer.
 */
export const settleWaitDefaultsMs: Readonly<Record<X402Version, number>> = { 1: 80_000, 2: 45_000 };

/** The accepted range, for both versions, in milliseconds. */
export const settleWaitBoundsMs = { least: 100, most: 600_000 } as const;

/** The most that the time of a local chain moves forward at once, in seconds: a hundred years. */
export const longestAdvanceSeconds = 3_155_760_000;
