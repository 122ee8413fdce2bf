import type { Chain } from "../../chain/chain.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { publicationTime } from "../../observe/channels/channel.ts";
import { type CheckMade, channels } from "../../observe/channels/channels.ts";
import type { Invalid } from "../../protocol/catalogue.ts";
import { type CheckName, checkNames } from "../../protocol/checks.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { PaymentRequest, X402Version } from "../../protocol/requests.ts";
import type { RecoveryLoop } from "../relayer/recovery.ts";
import type { Relayer } from "../relayer/relayer.ts";
import type { Outcomes } from "../relayer/slot.ts";

/** One operator on one network: the chain as it sees it, and the queue of what it sends. */
export type Lane = {
  chain: Chain;
  relayer: Relayer;
  /** Whether it can send, as far as is known: its operator has its role, gas money, and its signer. */
  canSend(): boolean;
  /** Whether its gas money is running low, by the last inspection. */
  isLow(): boolean;
};

/** The operators of one network, at least one. */
export type Lanes = readonly [Lane, ...Lane[]];

/** The collaborators of verify and settle. */
export type FacilitatorContext = {
  networks: ReadonlyMap<NetworkName, Lanes>;
  /** What follows failures up, on each of these networks. */
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

/**
 * Notes a check of one request for those who hear the channel `checks`, and gives its refusal back. With the first that is
 * noted, all before it in {@link checkNames} have passed.
 */
export type Checked = <T extends Invalid | undefined>(check: CheckName, refusal: T) => T;

/** Checks that passed are all alike, and so are lists of them: observers keep them for each request. */
const passed = checkNames.map((check): CheckMade => ({ check, refusal: undefined }));
const passedAlone = byName((place) => passed.slice(place, place + 1));
const passedBefore = byName((place) => passed.slice(0, place));
const passedUpTo = byName((place) => passed.slice(0, place + 1));

function byName<T>(describe: (place: number) => T): Readonly<Record<CheckName, T>> {
  return Object.fromEntries(checkNames.map((name, place) => [name, describe(place)])) as Record<CheckName, T>;
}

const unheard: Checked = (_check, refusal) => refusal;

/** What publishes the checks of a request, as a list that grows. */
export function publishChecksOf(payment: PaymentRequest, serviceId: string): Checked {
  if (!channels.checks.isHeard()) return unheard;
  const { settlementId } = payment;
  const checks: (readonly CheckMade[])[] = [];
  const times: number[] = [];
  return (check, refusal) => {
    const isFirst = checks.length === 0;
    if (refusal === undefined) checks.push((isFirst ? passedUpTo : passedAlone)[check]);
    else checks.push([...(isFirst ? passedBefore[check] : []), { check, refusal }]);
    times.push(publicationTime());
    if (isFirst) channels.checks.publish(() => ({ serviceId, settlementId, payment, checks, times }));
    return refusal;
  };
}
