import type { Address, Hex } from "../protocol/hex.ts";
import type { CorsOrigins } from "../protocol/routes.ts";
import type { ConfigurationProblem } from "../util/errors.ts";
import type { NetworkConfig } from "./network-config.ts";
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
  /** Whether the resources that organizations were paid for are stored and shown to them. */
  readonly discovery: boolean;
  /** Whether `/docs` shows a page about the API. */
  readonly docs: boolean;
  readonly logLevel: LogLevel;
  /** Warnings about settings that work, but are probably not meant. */
  readonly warnings: readonly ConfigurationProblem[];
};
