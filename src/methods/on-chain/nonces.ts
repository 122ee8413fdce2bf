import type { EventLog, LogFilter } from "../../chain/log-reader.ts";
import type { ViewCall } from "../../chain/views.ts";
import { type Address, addressWord, type Hex, sameAddress } from "../../protocol/hex.ts";
import type { SignedPayment } from "../../protocol/signed-payment.ts";
import { authorizationStateOf } from "../exact-eip3009/on-chain/eip3009-state.ts";
import {
  authorizationCanceledTopic,
  authorizationUsedTopic,
  decodeEvent,
  type PaymentEvent,
  permit2SettledTopic,
} from "../exact-eip3009/on-chain/events.ts";
import { isBitSet, nonceBitmapOf } from "../permit2/on-chain/permit2-state.ts";
import { cancellationsOf } from "../permit2/on-chain/submissions.ts";
import { permit2Address } from "../permit2/permit.ts";
import type { PaymentUse } from "./settling.ts";

/** A payment as its token, and the contract that keeps its nonce, know it. */
export type KnownPayment = Pick<SignedPayment, "asset" | "payer" | "nonce" | "nonceSpace">;

/** How the nonce of a payment is kept, for people's questions about it. */
export type Nonces = {
  readonly view: ViewCall;
  isUsed(word: Hex): boolean;
  /** The logs that can say how it was used or cancelled; one of them does. */
  readonly ends: readonly LogFilter[];
  isEnd(log: EventLog): boolean;
  /** What such a log says, among the events of its transaction. */
  describe(log: EventLog, events: readonly PaymentEvent[]): Pick<PaymentUse, "kind" | "moved">;
};

/** Whether Permit2 keeps the nonce of a payment, and not its token. */
export function isOfPermit2({ nonceSpace }: Pick<KnownPayment, "nonceSpace">): boolean {
  return sameAddress(nonceSpace, permit2Address);
}

/**
 * @param facilitatorContract whose events are the only ones that name a payment by Permit2; what others have submitted is not
 * found
 */
export function noncesOf(payment: KnownPayment, facilitatorContract?: Address): Nonces {
  return isOfPermit2(payment) ? ofPermit2(payment, facilitatorContract) : ofToken(payment);
}

function ofToken({ asset, payer, nonce }: KnownPayment): Nonces {
  const topics = [
    [authorizationUsedTopic, authorizationCanceledTopic],
    `0x${addressWord(payer)}` as const,
    nonce,
  ];
  return {
    view: authorizationStateOf(asset, payer, nonce),
    isUsed: (word) => BigInt(word) !== 0n,
    ends: [{ address: asset, topics }],
    isEnd: () => true,
    describe({ logIndex }, events) {
      const isUse = events.some((event) => event.logIndex === logIndex && event.name === "AuthorizationUsed");
      const transfer = events.find((event) => event.logIndex === logIndex + 1 && event.name === "Transfer");
      const isOfToken = transfer?.name === "Transfer" && sameAddress(transfer.emitter, asset);
      return {
        kind: isUse ? "used" : "cancelled",
        moved: isUse && isOfToken ? { to: transfer.to, value: transfer.value } : undefined,
      };
    },
  };
}

function ofPermit2(payment: KnownPayment, facilitatorContract: Address | undefined): Nonces {
  const { asset, payer, nonce } = payment;
  const cancellations = cancellationsOf(payment);
  const topics = [permit2SettledTopic, `0x${addressWord(asset)}`, `0x${addressWord(payer)}`, nonce] as const;
  const settlements =
    facilitatorContract === undefined ? [] : [{ address: facilitatorContract, topics: [...topics] }];
  const isSettlement = (log: EventLog) => decodeEvent(log)?.name === "Permit2Settled";
  return {
    view: nonceBitmapOf(payment),
    isUsed: (word) => isBitSet(payment, word),
    ends: [...settlements, cancellations.filter],
    isEnd: (log) => isSettlement(log) || cancellations.has(log),
    describe(log) {
      const event = decodeEvent(log);
      return event?.name === "Permit2Settled"
        ? { kind: "used", moved: { to: event.recipient, value: event.value } }
        : { kind: "cancelled", moved: undefined };
    },
  };
}
