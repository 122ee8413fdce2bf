import type { Chain } from "../../chain/chain.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { WaysToPay } from "../../methods/on-chain/ways-to-pay.ts";
import { type CheckMade, channels } from "../../observe/channels/channels.ts";
import { type Invalid, withReasonOfMethod } from "../../protocol/catalogue.ts";
import { type CheckName, checkNames } from "../../protocol/checks.ts";
import type { NetworkName } from "../../protocol/networks.ts";
import type { PaymentRequest, X402Version } from "../../protocol/requests.ts";
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
 * Notes a check of one request for those who hear the channel `checks`, and gives its refusal back. What is before it in
 * {@link checkNames} and was not noted has passed.
 */
export type Checked = <T extends Invalid | undefined>(check: CheckName, refusal: T) => T;

/** Checks that passed are all alike, and so are lists of them: observers keep them for each request. */
const passed = checkNames.map((check): CheckMade => ({ check, refusal: undefined }));
const passedLists = new Map<string, readonly CheckMade[]>();

/** Checks that are not always made: they are noted where they refuse. */
const notAlways: readonly string[] = ["payToIsOwn", "formIsOfReference"] satisfies CheckName[];

/** Those from one place in {@link checkNames} to before another. */
function passedBetween(from: number, to: number): readonly CheckMade[] {
  const key = `${from} ${to}`;
  const list =
    passedLists.get(key) ?? passed.slice(from, to).filter(({ check }) => !notAlways.includes(check));
  passedLists.set(key, list);
  return list;
}

const unheard: Checked = (_check, refusal) => refusal;

/** What publishes the checks of a request, together those between which nothing is waited for. */
export function publishChecksOf(payment: PaymentRequest, serviceId: string): Checked {
  if (!channels.checks.isHeard()) return unheard;
  const { settlementId } = payment;
  /** The places of the first check that is not published, and of the one after the last. */
  let from = 0;
  let to = 0;
  let refused: CheckMade | undefined;

  function publish(): void {
    const held = passedBetween(from, to);
    const checks = refused === undefined ? held : [...held, refused];
    from = to;
    refused = undefined;
    channels.checks.publish(() => {
      return { kind: "checks", at: Date.now(), serviceId, settlementId, payment, checks };
    });
  }

  return (check, refusal) => {
    const place = checkNames.indexOf(check);
    if (from === to && refused === undefined) queueMicrotask(publish);
    // Settle makes some of them again.
    if (place < from) from = place;
    to = refusal === undefined ? place + 1 : place;
    if (refusal !== undefined)
      refused = { check, refusal: withReasonOfMethod<Invalid>(refusal, payment.words) };
    return refusal;
  };
}
