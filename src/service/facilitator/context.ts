import type { Chain } from "../../chain/chain.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { RecoveryLoop } from "../relayer/recovery.ts";
import type { Relayer } from "../relayer/relayer.ts";
import type { Outcomes } from "../relayer/slot.ts";
import type { Sponsor } from "./sponsor.ts";

/** One operator on one network: its view of the chain, and the queue of its transactions. */
export type Lane = {
  chain: Chain;
  relayer: Relayer;
  /** Returns true if it can send, as far as is known: the operator has its role, gas money and its signer. */
  canSend(): boolean;
  /** Gives payers gas money on its network; undefined if nobody does. */
  sponsor?: Sponsor | undefined;
  /** Returns true if its gas money was running low at the last inspection. */
  isLow(): boolean;
};

/** The operators of one network, at least one. */
export type Lanes = readonly [Lane, ...Lane[]];

/** The collaborators of verify and settle. */
export type FacilitatorContext = {
  networks: ReadonlyMap<NetworkName, Lanes>;
  /** Follows up failures, one per network. */
  recoveries: ReadonlyMap<NetworkName, RecoveryLoop>;
  ledger: Ledger;
  ways: WaysToPay;
  outcomes: Outcomes;
  /** Unix milliseconds; for waiting only. Payments are judged by the time of the chain. */
  now: () => number;
  /** How long a settle waits for its outcome, by protocol version. */
  settleWaitMs: Readonly<Record<X402Version, number>>;
  /** Identifies the service on the channels; see `FromService`. */
  serviceId: string;
  /** Aborts when the service shuts down: waiting requests are answered then. */
  closing: AbortSignal;
};

/** How long a settle waits: until a time in unix milliseconds, or until the caller has left. */
export type Waiting = { now: () => number; deadline: number; signal: AbortSignal };
