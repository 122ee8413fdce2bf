import type { Chain } from "../../chain/chain.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { X402Version } from "../../protocol/requests.ts";
import type { RecoveryLoop } from "../relayer/recovery.ts";
import type { Relayer } from "../relayer/relayer.ts";
import type { Outcomes } from "../relayer/slot.ts";
import type { Sponsor } from "./sponsor.ts";

/** One operator on one network: the chain as it sees it, and the queue of what it sends. */
export type Lane = {
  chain: Chain;
  relayer: Relayer;
  /** Returns true if it can send, as far as is known: its operator has its role, gas money, and its signer. */
  canSend(): boolean;
  /** Gives payers gas money on its network; undefined where nobody does. */
  sponsor?: Sponsor | undefined;
  /** Returns true if its gas money is running low, by the last inspection. */
  isLow(): boolean;
};

/** The operators of one network, at least one. */
export type Lanes = readonly [Lane, ...Lane[]];

/** The collaborators of verify and settle. */
export type FacilitatorContext = {
  networks: ReadonlyMap<NetworkName, Lanes>;
  /** Follows failures up, on each of these networks. */
  recoveries: ReadonlyMap<NetworkName, RecoveryLoop>;
  ledger: Ledger;
  ways: WaysToPay;
  outcomes: Outcomes;
  /** Unix milliseconds; for waiting only. The time of a payment is the chain's. */
  now: () => number;
  /** How long a settle waits for its outcome, by protocol version. */
  settleWaitMs: Readonly<Record<X402Version, number>>;
  /** Names the service on the channels; see `FromService`. */
  serviceId: string;
  /** Aborts when the service shuts down: waiting requests are answered. */
  closing: AbortSignal;
};

/** How long a settle waits: until a time in unix milliseconds, or until no caller waits any more. */
export type Waiting = { now: () => number; deadline: number; signal: AbortSignal };
